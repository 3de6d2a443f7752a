"""How far a run has come: what a worker stores beside an offset, and what Airflow reads of it."""

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
"""Before its end, a partition stops at a fault, is yielded at a safe point, or is taken over by a newer run."""
PartitionState: TypeAlias = Literal["waiting", "running", "stopped", "yielded", "revoked", "complete"]


@dataclass(slots=True)
class Counts:
    """What became of the records of a range so far. The one mutable value: a worker counts in it."""

    read: int = 0
    written: int = 0
    dead_lettered: int = 0
    filtered: int = 0
    skipped: int = 0
    retried: int = 0
    lost: int = 0
    named: dict[str, int] = field(default_factory=dict)
    """What segments count, by name; what the engine itself counts beside it begins with `OWN_COUNTERS`."""
    causes: Causes = field(default=(), compare=False)
    """Why records became dead letters or were skipped: a comment on the numbers."""

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
    """The pieces in which the run of a plan has a partition."""

    number: int
    """The plan's."""
    count: int


@dataclass(frozen=True, slots=True)
class StoredProgress(Document):
    """The metadata of a stored offset: whose it is, and what stands behind it."""

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
    """The pipeline, as `KafkaPipeline.owner` tells it from others."""
    reason: str | None = None
    """Why the worker gave the partition up before its end, in one line."""
    stops_run: bool = False
    """Whether this attempt of the run should stop in all its partitions."""
    ended: Ending | None = None
    """In which way, where `reason` says why."""
    lease: Lease = NO_LEASE
    """Who stored it."""
    took_over: str | None = None
    """The run whose stored offset this one went on from."""
    inherited: Counts = field(default_factory=Counts)
    """What became of the records that other runs have handled, and that no checkpoint has told of."""
    pieces: int = 1
    """How many pieces the range is cut into; the first one's progress speaks for all in what follows."""
    unsettled: Pieces | None = None
    """Pieces of an earlier run that may still be at work, and whose counts nobody has inherited yet."""
    done: Spans = ()
    """Spans of the range that were completed before this run."""
    seconds: float = 0.0
    """How long records have been read and handled."""
    is_detailed: bool = False
    """Whether counters, causes and the whole reason are in the details group."""

    def is_of(self, run_key: str, number: int) -> bool:
        """Whether that plan's run has stored it. A DAG run that was deleted and triggered again has its key too."""
        return (self.run_key, self.number) == (run_key, number)

    @property
    def at_work(self) -> Pieces:
        """The pieces that may be at work: those of the run before, until they are settled."""
        return self.unsettled or Pieces(self.number, self.pieces)

    def is_in(self, topic_id: str, origin: Origin) -> bool:
        """Whether what it says is true of a topic, and of the runs that follow each other from an origin."""
        return (self.topic_id, self.origin) == (topic_id, origin)


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """One range of a plan and how far it has come."""

    range: PartitionRange
    next_offset: int
    counts: Counts
    _: KW_ONLY
    started: bool = True
    reason: str | None = None
    ended: Ending | None = None
    took_over: str | None = None
    inherited: Counts = field(default_factory=Counts)
    """What became of the records that other runs have handled, and that no checkpoint has told of."""
    done: Spans = ()
    """Spans that earlier runs have completed, which need no reading."""
    beyond: Spans = ()
    """Spans that are completed above the next offset."""
    seconds: float = 0.0
    """How long records have been read and handled; of pieces, all together."""

    @classmethod
    def of_pieces(cls, planned: PartitionRange, pieces: Sequence[PartitionProgress]) -> PartitionProgress:
        """The progress of a range from that of its pieces, of which the first speaks for the partition."""
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
        return cls(
            planned,
            completed.next_offset,
            sum((each.counts for each in pieces), Counts()),
            started=any(each.started for each in pieces),
            reason=unfinished[0].reason if unfinished else None,
            ended=unfinished[0].ended if unfinished else None,
            took_over=first.took_over,
            inherited=first.inherited,
            done=first.done,
            beyond=completed.beyond,
            seconds=sum(each.seconds for each in pieces),
        )

    @classmethod
    def not_started(cls, planned: PartitionRange) -> PartitionProgress:
        return cls(planned, planned.start, Counts(), started=False)

    @classmethod
    def revoked(cls, planned: PartitionRange, owner: str) -> PartitionProgress:
        """What this run had stored is the newer run's by now, which went on from it."""
        reason = f"run {owner} took the partition over"
        return cls(planned, planned.start, Counts(), started=False, reason=reason, ended="revoked")

    def with_done(self, done: Spans) -> PartitionProgress:
        """The same, where earlier runs have completed these spans too."""
        return dataclasses.replace(self, done=CompletedOffsets(-1, (*self.done, *done)).beyond)

    @property
    def all_counts(self) -> Counts:
        """With those of the runs that it took over, of which no checkpoint will tell."""
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
        """While workers were at it."""
        return round(self.counts.read / self.seconds, 1) if self.seconds else 0.0

    @property
    def offsets_completed(self) -> int:
        """Those of the range; those beyond a gap too, where pieces of the range are ahead of the first."""
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
