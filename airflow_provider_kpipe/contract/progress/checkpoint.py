"""The results of the checkpoint step: the mark on a committed offset, and the record in XCom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from airflow_provider_kpipe.contract.documents import Document
from airflow_provider_kpipe.contract.offsets.completed import Spans
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.progress.progress import Counts

CHECKPOINT_KEY = "checkpoint"
"""The XCom key of a checkpoint task's record, which is there even if the task fails."""
COMMITTED_KEY = "committed"
"""The XCom key of the offsets of the pipeline's group that checkpoint tasks remember."""


@dataclass(frozen=True, slots=True)
class CommitMark(Document):
    """The metadata of a committed offset: it names the run whose progress was published.

    Another tool that sets the group's offset leaves no mark, even if the offset stays the same.
    """

    SCHEMA_VERSION: ClassVar[int] = 1

    run_key: str
    number: int
    """The number of the run's plan."""
    topic_id: str
    origin: Origin
    owner: str = ""
    """The pipeline, as `KafkaPipeline.owner` identifies it."""
    beyond: Spans = ()
    """Spans above the committed offset that the run has completed: the next run does not read them again."""


@dataclass(frozen=True, slots=True)
class PartitionCheckpoint:
    """One partition after the checkpoint."""

    partition: int
    start: int
    end: int
    committed: int | None
    complete: bool
    reason: str | None
    counts: Counts


@dataclass(frozen=True, slots=True)
class Checkpoint(Document):
    """The published offsets and counts of each partition: the checkpoint task's XCom."""

    SCHEMA_VERSION: ClassVar[int] = 1

    run_key: str
    pipeline: str
    group: str
    topic: str
    partitions: tuple[PartitionCheckpoint, ...]

    @property
    def complete(self) -> bool:
        return all(each.complete for each in self.partitions)

    @property
    def totals(self) -> Counts:
        return sum((each.counts for each in self.partitions), Counts())

    @property
    def committed(self) -> dict[int, int]:
        """The group's offset in each partition in which it holds one."""
        return {each.partition: each.committed for each in self.partitions if each.committed is not None}


@dataclass(frozen=True, slots=True)
class CommittedOffsets(Document):
    """The last known offsets of a pipeline's group, which outlive what the broker keeps of a group.

    A run with a group of its own leaves none, so that those of the runs before it stay visible.
    """

    SCHEMA_VERSION: ClassVar[int] = 1

    group: str
    topic: str
    offsets: Mapping[int, int]
