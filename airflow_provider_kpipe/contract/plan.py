"""The plan: all ranges of one run, frozen, with the facts that they were resolved against."""

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
    """The group after which the run's progress, its writers and its stop requests are named. A run that does not
    continue the pipeline's group has a working group of its own, even if it is published."""
    topic: str
    topic_id: str
    isolation_level: IsolationLevel
    continues_group: bool
    """True if the ranges begin at the group's position: only then may a later plan resume from their progress."""
    dry_run: bool
    created_at: str
    topic_partitions: int
    """The number of partitions of the topic, planned or not."""
    ranges: tuple[PartitionRange, ...]
    metadata_bytes: int = METADATA_BYTES
    """The size of the metadata that the broker accepts beside an offset."""
    owner: str = ""
    """The pipeline, as `KafkaPipeline.owner` identifies it: only this pipeline may move its offsets."""

    def __post_init__(self) -> None:
        if size_of(self.run_key) > KEY_BYTES:
            raise ValueError(f"the run key {self.run_key[:40]!r}... takes more than {KEY_BYTES} bytes: shorten it")
        partitions = sorted(each.partition for each in self.ranges)
        for partition, following in pairwise(partitions):
            if partition == following:
                raise ValueError(f"partition {partition} of {self.topic!r} has more than one range in the plan")

    @property
    def is_published(self) -> bool:
        """True if the run moves a group that other runs resume from, though it does not continue that group itself."""
        return self.group != self.working_group

    def progress_group(self, slot: int = 0) -> str:
        return progress_group_of(self.working_group, slot)

    def transactional_id(self, partition: int, slot: int = 0) -> str:
        """Return the id, stable across attempts and runs, that fences a predecessor; the consumer group does not."""
        return writer_id_of(self.working_group, self.topic, partition, slot)

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """The transactional ids of all ranges that hold something to read."""
        pieces = (piece for each in self.pending for piece in each.pieces)
        return tuple(dict.fromkeys(self.transactional_id(each.partition, each.slot) for each in pieces))

    @property
    def blocks(self) -> tuple[tuple[PartitionRange, ...], ...]:
        """The pieces of the pending ranges, grouped by their writer; the largest block first."""
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
