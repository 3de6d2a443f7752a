"""What Airflow hands to the Spark driver: the job, and apart from it the settings that hold secrets."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_provider_kpipe.contract.documents import Document
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.redrive.redrive import Redrive, target_topic, written_topics

DRIVER_GRACES, TASK_GRACES = 3, 4


@dataclass(frozen=True, slots=True)
class Job(Document):
    """One pipeline, the plan of one run of it, and which attempt at that run this is."""

    SCHEMA_VERSION: ClassVar[int] = 1

    pipeline: KafkaPipeline
    plan: Plan
    attempt: int = 1
    """Drawn from the counter that the plan's number is drawn from: a later attempt has a higher one."""
    deadline: float | None = None
    """In seconds since 1970, when all partitions yield."""
    redrive: Redrive | None = None
    """What to do with dead letters; the plan is one of their topic then."""
    grace_seconds: float = 60.0
    """After the deadline, whoever looks after others waits so long for them: the supervisor of a worker, before it
    ends it, once; the driver, before it ends itself, three times; the task, before it ends the driver, four times. User
    code beside the handling of records has as long, where its limit is not above that."""
    checkpointed: tuple[int, ...] = ()
    """The partitions in which a checkpoint has come to more than the plan knows of: it is not done once more."""

    @property
    def output_topic(self) -> str:
        """Where records go that no segment sends elsewhere."""
        return target_topic(self.pipeline, self.redrive) if self.redrive else self.pipeline.destination.topic

    @property
    def written_topics(self) -> tuple[str, ...]:
        """All that it writes to, but those that segments choose."""
        return written_topics(self.pipeline, self.redrive) if self.redrive else self.pipeline.written_topics

    def overdue_after(self, graces: int) -> float:
        """In seconds since 1970: never, where there is no deadline."""
        return math.inf if self.deadline is None else self.deadline + graces * self.grace_seconds

    def step_seconds(self, limit: float) -> float:
        """How long user code may take beside the handling of records: what opens does more than for one of them."""
        return max(limit, self.grace_seconds)

    def lease(self, task: int) -> Lease:
        return Lease(self.plan.number, self.attempt, task)


# What is on its way between fetching and acknowledging should stay in the processor's caches: batches of 1 MB made a
# copy a fifth slower. The broker takes time for each: at half this size, works of all kinds were up to 5 % slower.
BATCH_BYTES = 256_000


@dataclass(frozen=True, slots=True, repr=False)
class KafkaSettings(Document):
    """librdkafka settings of both ends, and those of their schema registries, if they have some.

    Has no repr: it would show the secrets.
    """

    SCHEMA_VERSION: ClassVar[int] = 1

    source: Mapping[str, str]
    destination: Mapping[str, str]
    source_registry: Mapping[str, str] = field(default_factory=dict)
    destination_registry: Mapping[str, str] = field(default_factory=dict)


def pack(document: Document) -> str:
    """One word of ASCII, which is all that a task takes along; a plan of 1,000 ranges has about 10 kB."""
    return base64.urlsafe_b64encode(gzip.compress(document.to_text().encode(), mtime=0)).decode()


def unpack(packed: str) -> Any:
    return json.loads(gzip.decompress(base64.urlsafe_b64decode(packed)))
