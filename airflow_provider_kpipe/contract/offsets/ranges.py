"""Ranges: the offsets of one partition that a run reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from airflow_provider_kpipe.contract.offsets.completed import Spans
from airflow_provider_kpipe.contract.offsets.origin import NO_ORIGIN, Origin

# Kafka's own number for an unknown epoch.
NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """The range `[start, end)` of one partition, frozen, with the committed offset it was resolved against."""

    partition: int
    start: int
    end: int
    committed: int | None
    cuts: tuple[int, ...] = ()
    """The offsets at which the range is cut into pieces, so that several tasks can work on it."""
    done: Spans = ()
    """Spans `[first, after)` above the start that an earlier run has completed."""
    slot: int = 0
    """The index of a piece among the pieces of its partition."""
    origin: Origin = NO_ORIGIN
    """The origin of the range: progress with another origin does not count for it."""
    group_origin: Origin = NO_ORIGIN
    """The origin of the runs that continue the pipeline's group. A checkpoint moves the group only within it."""
    leader_epoch: int = NO_EPOCH
    """The epoch of the partition's leader when the range was planned. It is stored with each offset of the range: a
    leader that has lost records since reports that when it is asked about the offset and the epoch."""

    def __post_init__(self) -> None:
        borders = (self.start, *self.cuts, self.end)
        if self.cuts and any(later <= earlier for earlier, later in pairwise(borders)):
            raise ValueError(f"partition {self.partition}: the cuts {self.cuts} do not lie in order within the range")
        if any(len(span) != 2 for span in self.done):
            raise ValueError(f"partition {self.partition}: done has {self.done}; a span is a first offset and an end")
        if self.partition < 0 or self.start < 0:
            raise ValueError(f"partition {self.partition}, start {self.start}: neither can be negative")
        if self.end < self.start:
            raise ValueError(f"partition {self.partition}: start {self.start} is after end {self.end}")

    def __len__(self) -> int:
        """Return the number of offsets: an upper bound of the records, since markers and compaction leave holes."""
        return self.end - self.start

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch to store with an offset, which is at least that of the records before it.

        The plan knows none for an offset beyond its end, to which another run has come: later leaders may have written
        those records, and an epoch that is too low makes the log look truncated.
        """
        return self.leader_epoch if offset <= self.end else NO_EPOCH

    @property
    def pieces(self) -> tuple[PartitionRange, ...]:
        """The pieces that tasks work on: the range itself, if it is not cut."""
        if not self.cuts:
            return (self,)
        borders = pairwise((self.start, *self.cuts, self.end))
        return tuple(
            replace(self, start=start, end=end, cuts=(), slot=slot) for slot, (start, end) in enumerate(borders)
        )
