"""The plan: all ranges of one run, frozen, with what they were resolved against."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from airflow_provider_kpipe.contract.documents import Document
from airflow_provider_kpipe.contract.kafka_names import MOST_WRITERS, progress_group_of, writer_id_of
from airflow_provider_kpipe.contract.offsets.metadata import KEY_BYTES, METADATA_BYTES, size_of
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import IsolationLevel


@dataclass(frozen=True, slots=True)
class Plan(Document):
    """One run of one pipeline over one topic."""

    SCHEMA_VERSION: ClassVar[int] = 1

    run_key: str
    number: int
    """Drawn from a counter in Kafka when the plan is made: a later plan has a higher one."""
    pipeline: str
    group: str
    """The group that the checkpoint commits to."""
    working_group: str
    """The group that the run's progress, its writers and requests to stop are named after. A run that does not start
    where the group stands has one of its own, also where it is published."""
    topic: str
    topic_id: str
    isolation_level: IsolationLevel
    continues_group: bool
    """Whether the ranges begin where the group stands: only then may a later plan go on from their progress."""
    dry_run: bool
    created_at: str
    topic_partitions: int
    """How many partitions the topic has, planned or not."""
    ranges: tuple[PartitionRange, ...]
    metadata_bytes: int = METADATA_BYTES
    """How much the broker takes beside an offset."""
    owner: str = ""
    """The pipeline as `KafkaPipeline.owner` tells it from others: its offsets are no other pipeline's to move."""

    def __post_init__(self) -> None:
        if size_of(self.run_key) > KEY_BYTES:
            raise ValueError(f"the run key {self.run_key[:40]!r}... takes more than {KEY_BYTES} bytes: shorten it")
        partitions = sorted(each.partition for each in self.ranges)
        for partition, following in pairwise(partitions):
            if partition == following:
                raise ValueError(f"partition {partition} of {self.topic!r} has more than one range in the plan")

    @property
    def is_published(self) -> bool:
        """Whether a group is moved that others go on from, by a run that does not start where it stands."""
        return self.group != self.working_group

    def progress_group(self, slot: int = 0) -> str:
        return progress_group_of(self.working_group, slot)

    def transactional_id(self, partition: int, slot: int = 0) -> str:
        """Stable across attempts and runs: this, and not the consumer group, fences a predecessor."""
        return writer_id_of(self.working_group, self.topic, partition, slot)

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """Of all ranges that hold something to read."""
        pieces = (piece for each in self.pending for piece in each.pieces)
        return tuple(dict.fromkeys(self.transactional_id(each.partition, each.slot) for each in pieces))

    @property
    def blocks(self) -> tuple[tuple[PartitionRange, ...], ...]:
        """The pending ranges in pieces, those with one writer together; the largest block first."""
        blocks: dict[tuple[int, int], list[PartitionRange]] = {}
        for each in self.pending:
            for piece in each.pieces:
                blocks.setdefault((each.partition % MOST_WRITERS, piece.slot), []).append(piece)
        return tuple(sorted(map(tuple, blocks.values()), key=lambda block: sum(map(len, block)), reverse=True))

    @property
    def pending(self) -> tuple[PartitionRange, ...]:
        """Ranges that hold something to read, the longest first, so that no long one starts last."""
        return tuple(sorted((each for each in self.ranges if len(each)), key=len, reverse=True))

    @property
    def offsets_planned(self) -> int:
        return sum(map(len, self.ranges))
