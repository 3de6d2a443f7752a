"""The progress of a run, as a worker stores it beside an offset and as Airflow reads it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from airflow_provider_kpipe.contract.documents import Document
from airflow_provider_kpipe.contract.faults.causes import Causes, merged
from airflow_provider_kpipe.contract.offsets.completed import CompletedOffsets, Spans
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.lease import NO_LEASE, Lease

OWN_COUNTERS = "kpipe:"

Ending: TypeAlias = Literal["stopped", "yielded", "revoked"]
"""The ways to end early: a partition stops at a fault, is yielded at a safe point, or is taken over by a newer run."""
PartitionState: TypeAlias = Literal["waiting", "running", "stopped", "yielded", "revoked", "complete"]


@dataclass(slots=True)
class Counts:
    """The numbers of a range's records so far, by outcome. Mutable, since a worker counts in it."""

    read: int = 0
    written: int = 0
    dead_lettered: int = 0
    filtered: int = 0
    skipped: int = 0
    retried: int = 0
    lost: int = 0
    named: dict[str, int] = field(default_factory=dict)
    """The counters of segments, by name; the names of the engine's own counters begin with `OWN_COUNTERS`."""
    causes: Causes = field(default=(), compare=False)
    """The reasons why records became dead letters or were skipped: a comment on the numbers."""

    def __add__(self, other: Counts) -> Counts:
        names = self.named.keys() | other.named.keys()
        return Counts(
            **{name: getattr(self, name) + getattr(other, name) for name in _OWN_COUNTS},
            named={name: self.named.get(name, 0) + other.named.get(name, 0) for name in sorted(names)},
            causes=merged((*self.causes, *other.causes)),
        )

    def copy(self) -> Counts:
        return dataclasses.replace(self, named=dict(self.named), causes=merged(self.causes))


_OWN_COUNTS = tuple(each.name for each in dataclasses.fields(Counts) if each.name not in ("named", "causes"))


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces into which the run of a plan has cut a partition."""

    number: int
    """The number of the plan."""
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeProgress:
    """The progress of a range beside its offset and its counts. A field that is added here goes everywhere with it."""

    reason: str | None = None
    """The reason why the worker gave the range up before its end, in one line."""
    ended: Ending | None = None
    """The way in which the range ended early; `reason` says why."""
    took_over: str | None = None
    """The run at whose stored offset this one resumed."""
    inherited: Counts = field(default_factory=Counts)
    """The counts of the records that other runs have handled and that no checkpoint has reported."""
    done: Spans = ()
    """Spans that earlier runs have completed, and that need no reading."""
    seconds: float = 0.0
    """The time spent on reading and handling records; for a range in pieces, the sum of theirs."""

    @property
    def carried(self) -> dict[str, Any]:
        """The fields above, for another value that has them."""
        return {name: getattr(self, name) for name in _CARRIED}


_CARRIED = tuple(each.name for each in dataclasses.fields(RangeProgress))


@dataclass(frozen=True, slots=True)
class StoredProgress(RangeProgress, Document):
    """The metadata of a stored offset: the run that stored it, and the progress that the offset stands for."""

    SCHEMA_VERSION: ClassVar[int] = 1

    run_key: str
    number: int
    """The number of the run's plan."""
    topic_id: str
    origin: Origin
    start: int
    end: int
    counts: Counts
    owner: str = ""
    """The pipeline, as `KafkaPipeline.owner` identifies it."""
    stops_run: bool = False
    """True if this attempt of the run should stop in all its partitions."""
    lease: Lease = NO_LEASE
    """The lease of the worker that stored it."""
    pieces: int = 1
    """The number of pieces of the range; the first piece speaks for all of them."""
    unsettled: Pieces | None = None
    """Pieces of an earlier run that may still be at work, and whose counts no run has inherited yet."""
    is_detailed: bool = False
    """True if counters, causes and the whole reason are in the details group."""

    def is_of(self, run_key: str, number: int) -> bool:
        """Tell whether that plan's run has stored it. A DAG run deleted and triggered again has the same key."""
        return (self.run_key, self.number) == (run_key, number)

    @property
    def at_work(self) -> Pieces:
        """The pieces that may be at work: those of the run before, until they are settled."""
        return self.unsettled or Pieces(self.number, self.pieces)

    def is_in(self, topic_id: str, origin: Origin) -> bool:
        """Tell whether it holds for a topic, and for the runs that follow each other from an origin."""
        return (self.topic_id, self.origin) == (topic_id, origin)


@dataclass(frozen=True, slots=True)
class PartitionProgress(RangeProgress):
    """One range of a plan and its progress."""

    range: PartitionRange
    next_offset: int
    counts: Counts
    _: KW_ONLY
    started: bool = True
    beyond: Spans = ()
    """Spans that are completed above the next offset."""

    @classmethod
    def of_pieces(cls, planned: PartitionRange, pieces: Sequence[PartitionProgress]) -> PartitionProgress:
        """Combine the progress of a range's pieces, of which the first speaks for the partition."""
        first, *others = pieces
        if not (others or first.done or planned.done):
            return first
        completed = CompletedOffsets(planned.start)
        for each in pieces:
            completed.add(each.range.start, each.next_offset)
        for done in (planned.done, *(each.done for each in pieces)):
            for start, end in done:
                completed.add(start, end)
        unfinished = [each for each in pieces if not each.complete and each.reason]
        return dataclasses.replace(
            first,
            range=planned,
            next_offset=completed.next_offset,
            counts=sum((each.counts for each in pieces), Counts()),
            started=any(each.started for each in pieces),
            reason=unfinished[0].reason if unfinished else None,
            ended=unfinished[0].ended if unfinished else None,
            beyond=completed.beyond,
            seconds=sum(each.seconds for each in pieces),
        )

    @classmethod
    def not_started(cls, planned: PartitionRange) -> PartitionProgress:
        return cls(planned, planned.start, Counts(), started=False)

    @classmethod
    def revoked(cls, planned: PartitionRange, owner: str | None) -> PartitionProgress:
        """Make the progress of a range that a newer run, `owner`, has resumed: this run's part is that run's by now."""
        reason = f"{'an unknown run' if owner is None else f'run {owner}'} took the partition over"
        return cls(planned, planned.start, Counts(), started=False, reason=reason, ended="revoked")

    def with_done(self, done: Spans) -> PartitionProgress:
        """Return a copy in which these spans, which earlier runs have completed, are done too."""
        return dataclasses.replace(self, done=CompletedOffsets(-1, (*self.done, *done)).beyond)

    @property
    def all_counts(self) -> Counts:
        """The counts with those of the runs that it took over, which no checkpoint of theirs will report."""
        return self.counts + self.inherited

    @property
    def complete(self) -> bool:
        return self.next_offset >= self.range.end

    @property
    def state(self) -> PartitionState:
        if self.complete:
            return "complete"
        if self.reason:
            return self.ended or "stopped"
        return "running" if self.started else "waiting"

    @property
    def records_per_second(self) -> float:
        """The rate while workers were at work."""
        return round(self.counts.read / self.seconds, 1) if self.seconds else 0.0

    @property
    def offsets_completed(self) -> int:
        """The number of completed offsets of the range, also beyond a gap if pieces are ahead of the first."""
        spans = ((self.range.start, self.next_offset), *self.beyond)
        return sum(max(0, min(end, self.range.end) - start) for start, end in spans)

    @property
    def fraction(self) -> float:
        return self.offsets_completed / len(self.range) if len(self.range) else 1.0

    def to_json(self) -> dict[str, Any]:
        return {
            "partition": self.range.partition,
            "start": self.range.start,
            "end": self.range.end,
            "stored": self.next_offset,
            "state": self.state,
            "reason": self.reason,
            "records_per_second": self.records_per_second,
            **dataclasses.asdict(self.counts),
        }
