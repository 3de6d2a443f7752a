"""The job that Airflow hands to the Spark driver and, apart from it, the settings that hold secrets."""

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
    """One pipeline, the plan of one of its runs, and the number of this attempt at that run."""

    SCHEMA_VERSION: ClassVar[int] = 1

    pipeline: KafkaPipeline
    plan: Plan
    attempt: int = 1
    """Drawn from the same counter as the plan's number: a later attempt has a higher one."""
    deadline: float | None = None
    """The time at which all partitions yield, in seconds since 1970."""
    redrive: Redrive | None = None
    """Instructions for dead letters; the plan then covers their topic."""
    grace_seconds: float = 60.0
    """The time that each guard waits after the deadline: the supervisor once, before it ends a worker; the driver three
    times, before it ends itself; the task four times, before it ends the driver. User code outside the handling of
    records may take as long too, or up to its own limit if that is higher."""
    checkpointed: tuple[int, ...] = ()
    """The partitions in which a checkpoint has published more than the plan knows of: that part is not redone."""

    @property
    def output_topic(self) -> str:
        """The topic of the records that no segment sends elsewhere."""
        return target_topic(self.pipeline, self.redrive) if self.redrive else self.pipeline.destination.topic

    @property
    def written_topics(self) -> tuple[str, ...]:
        """All topics that the job writes to, except those that segments choose."""
        return written_topics(self.pipeline, self.redrive) if self.redrive else self.pipeline.written_topics

    def overdue_after(self, graces: int) -> float:
        """Return the deadline plus so many graces, in seconds since 1970; infinity without a deadline."""
        return math.inf if self.deadline is None else self.deadline + graces * self.grace_seconds

    def step_seconds(self, limit: float) -> float:
        """Return the limit of user code outside the handling of records: opening does more than handling one record."""
        return max(limit, self.grace_seconds)

    def lease(self, task: int) -> Lease:
        return Lease(self.plan.number, self.attempt, task)


# Data on its way from fetch to acknowledgement should stay in the processor's caches: batches of 1 MB made a copy a
# fifth slower. But each batch costs the broker time: at half this size, work of all kinds was up to 5 % slower.
BATCH_BYTES = 256_000


@dataclass(frozen=True, slots=True, repr=False)
class KafkaSettings(Document):
    """librdkafka settings of both ends, and settings of their schema registries, if they have any.

    It has no repr, which would show the secrets.
    """

    SCHEMA_VERSION: ClassVar[int] = 1

    source: Mapping[str, str]
    destination: Mapping[str, str]
    source_registry: Mapping[str, str] = field(default_factory=dict)
    destination_registry: Mapping[str, str] = field(default_factory=dict)


def pack(document: Document) -> str:
    """Return a document as one word of ASCII, all that a task takes along; a plan of 1,000 ranges has about 10 kB."""
    return base64.urlsafe_b64encode(gzip.compress(document.to_text().encode(), mtime=0)).decode()


def unpack(packed: str) -> Any:
    return json.loads(gzip.decompress(base64.urlsafe_b64decode(packed)))
