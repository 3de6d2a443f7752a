"""The plan: all ranges of one run, frozen, with what they were resolved against."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.strict_json import Document

IsolationLevel = Literal["read_committed", "read_uncommitted"]
PROGRESS_SUFFIX = ".kpipe"
# To become the writer of a partition takes 20 ms: those of a topic with thousands share some.
MOST_WRITERS = 100


def progress_group_of(group: str, slot: int = 0) -> str:
    """The group that holds the stored offsets of the runs that commit to `group`.

    A group has one offset for each partition: pieces beyond the first have theirs in groups of their own.
    """
    return f"{group}{PROGRESS_SUFFIX}.{slot}" if slot else group + PROGRESS_SUFFIX


@dataclass(frozen=True, slots=True)
class Plan(Document):
    """One run of one pipeline over one topic."""

    SCHEMA_VERSION: ClassVar[int] = 1

    run_key: str
    pipeline: str
    group: str
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

    def __post_init__(self) -> None:
        partitions = sorted(each.partition for each in self.ranges)
        for partition, following in pairwise(partitions):
            if partition == following:
                raise ValueError(f"partition {partition} of {self.topic!r} has more than one range in the plan")

    @property
    def progress_group(self) -> str:
        return progress_group_of(self.group)

    def transactional_id(self, partition: int, slot: int = 0) -> str:
        """Stable across attempts and runs: this, and not the consumer group, fences a predecessor."""
        # A slash is in no topic's name, so what a group and a topic make together is theirs alone.
        writer = f"kpipe/{self.group}/{self.topic}/{self._writer_of(partition)}"
        return f"{writer}/{slot}" if slot else writer

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
                blocks.setdefault((self._writer_of(each.partition), piece.slot), []).append(piece)
        return tuple(sorted(map(tuple, blocks.values()), key=lambda block: sum(map(len, block)), reverse=True))

    def _writer_of(self, partition: int) -> int:
        """The first of the neighbours that share a writer, and with it a transactional id.

        It depends on nothing but the topic: any two runs have to agree on whom they fence.
        """
        size = 1
        while self.topic_partitions > size * MOST_WRITERS:
            size *= 2
        return partition - partition % size

    @property
    def pending(self) -> tuple[PartitionRange, ...]:
        """Ranges that hold something to read, the longest first, so that no long one starts last."""
        return tuple(sorted((each for each in self.ranges if len(each)), key=len, reverse=True))

    @property
    def offsets_planned(self) -> int:
        return sum(map(len, self.ranges))
