"""How far a run has come: what a worker stores beside an offset, and what Airflow reads of it."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from airflow_provider_kpipe.contract.clean_text import cleaned
from airflow_provider_kpipe.contract.completed_offsets import CompletedOffsets, Spans
from airflow_provider_kpipe.contract.lease import Lease
from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.strict_json import Document, DocumentError

# The broker refuses offset metadata above 4,096 bytes (offset.metadata.max.bytes).
METADATA_BYTES = 4096
OWN_COUNTERS = "kpipe:"
STOP_REASON_CHARACTERS = 600

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

    def __add__(self, other: Counts) -> Counts:
        names = self.named.keys() | other.named.keys()
        return Counts(
            **{name: getattr(self, name) + getattr(other, name) for name in _OWN_COUNTS},
            named={name: self.named.get(name, 0) + other.named.get(name, 0) for name in sorted(names)},
        )

    def copy(self) -> Counts:
        return dataclasses.replace(self, named=dict(self.named))


_OWN_COUNTS = tuple(each.name for each in dataclasses.fields(Counts) if each.name != "named")


def mark_of(run_key: str | None) -> str | None:
    """A run key in few bytes: several may have to fit beside one offset."""
    return None if run_key is None else hashlib.sha256(run_key.encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class StoredProgress(Document):
    """The metadata of a stored offset: whose it is, and what stands behind it."""

    SCHEMA_VERSION: ClassVar[int] = 1

    run_key: str
    start: int
    base: int | None
    """The group's committed offset when the run was planned."""
    continues_group: bool
    counts: Counts
    reason: str | None = None
    """Why the worker gave the partition up before its end, in one line."""
    stops_attempt: str | None = None
    """The attempt of the run that should stop in all its partitions, if this one stopped for all of them."""
    ended: Ending | None = None
    """In which way, where `reason` says why."""
    lease: Lease | None = None
    """Who stored it."""
    took_over: str | None = None
    """The run whose stored offset this one went on from."""
    pieces: int = 1
    """How many pieces the range is cut into; the first one's progress speaks for all in what follows."""
    unsettled_pieces: int = 1
    """How many pieces the run before had, as long as they may still be at work."""
    done: Spans = ()
    """Spans of the range that were completed before this run."""
    seconds: float = 0.0
    """How long records have been read and handled."""
    base_mark: str | None = None
    """Which run had put the group there, by `mark_of`."""

    @property
    def planned_at(self) -> str | None:
        """When the plan of its run was made."""
        return self.lease.planned_at if self.lease else None

    def is_of(self, run_key: str | None, planned_at: str | None) -> bool:
        """Whether that plan's run has stored it. A DAG run that was deleted and triggered again has its key too; where
        only one of the two says when it was planned, the key decides."""
        return self.run_key == run_key and (None in (planned_at, self.planned_at) or self.planned_at == planned_at)

    def is_based_on(self, committed: int | None, committed_by: str | None) -> bool:
        """Whether the group still is where this run found it. Somebody who has reset it to that very offset has left no
        mark of a run beside it, and wants the records again."""
        return self.base == committed and self.base_mark == mark_of(committed_by)

    def to_metadata(self) -> str:
        full = self.reason
        # The last resort is shorter than the `null` of a range that goes on.
        for reason in (full and full[:STOP_REASON_CHARACTERS], full and full[:100], full and full[:20], full and "?"):
            text = dataclasses.replace(self, reason=reason).to_text()
            if len(text.encode()) <= METADATA_BYTES:
                return text
        raise DocumentError(
            f"the run key {self.run_key[:80]!r}... makes offset metadata of {len(text.encode())} bytes, "
            f"and the broker takes {METADATA_BYTES}: use a shorter DAG id, run id or task id"
        )


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
    done: Spans = ()
    """Spans that earlier runs have completed, which need no reading."""
    beyond: Spans = ()
    """Spans that are completed above the next offset."""
    seconds: float = 0.0
    """How long records have been read and handled; of pieces, all together."""
    newer: StoredProgress | None = None
    """What the newer run has stored that has the partition by now."""

    @classmethod
    def of(
        cls, planned: PartitionRange, run_key: str, stored: int | None, metadata: str | None, planned_at: str
    ) -> PartitionProgress:
        """Read a stored offset as progress of this run; of another run's, only that it is newer counts."""
        progress = StoredProgress.read_text(metadata, f"partition {planned.partition}")
        if stored is None or progress is None:
            return cls.not_started(planned)
        if not progress.is_of(run_key, planned_at):
            newer = progress.lease is not None and progress.lease.planned_at > planned_at
            return cls.overtaken(planned, progress) if newer else cls.not_started(planned)
        return cls(
            planned,
            stored,
            progress.counts,
            reason=progress.reason and cleaned(progress.reason),
            ended=progress.ended,
            took_over=progress.took_over,
            done=progress.done,
            seconds=progress.seconds,
        )

    @classmethod
    def of_pieces(cls, planned: PartitionRange, pieces: Sequence[PartitionProgress]) -> PartitionProgress:
        """The progress of a range from that of its pieces, of which the first speaks for the partition."""
        first, *others = pieces
        if first.newer is not None:
            # A newer run that began behind the first piece did not begin behind all of them.
            return cls.overtaken(planned, first.newer)
        if first.ended == "revoked" or (not (others or first.done or planned.done)):
            return dataclasses.replace(first, range=planned)
        completed = CompletedOffsets(planned.start)
        for each in pieces:
            completed.add(each.range.start, each.next_offset)
        for start, end in (*planned.done, *first.done):
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

    @classmethod
    def overtaken(cls, planned: PartitionRange, newer: StoredProgress) -> PartitionProgress:
        """The newer run has the partition, from where this one stands or from behind its range."""
        if newer.base is not None and newer.base >= planned.end:
            # This run was published before the newer one was planned.
            return cls(planned, planned.end, Counts(), ended="revoked", newer=newer)
        return dataclasses.replace(cls.revoked(planned, newer.run_key), newer=newer)

    def with_done(self, done: Spans) -> PartitionProgress:
        return dataclasses.replace(self, done=done)

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
        """Those beyond a gap too, where pieces of the range are ahead of the first."""
        return self.next_offset - self.range.start + sum(end - start for start, end in self.beyond)

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
