"""One range on its way through a worker.

These are its phases, and all ways from one to another. A phase may also stay as it is.

::

    WAITING ─┬─► RUNNING     our lease is stored beside the offset: it is claimed
             ├─► COMPLETE    it is claimed, and nothing of it is left
             ├─► STOPPED     it has no room for the spans of its pieces, or the worker cannot go on
             ├─► REVOKED     a later lease is found: nothing of ours is stored any more
             └─► LEFT        the progress is unreadable, or another pipeline's: it stays as it is

    RUNNING ─┬─► COMPLETE    its end is stored
             ├─► STOPPED     a fault, lost data, or a cluster that does not answer
             ├─► YIELDED     a request to stop, or the deadline
             ├─► REVOKED     a failed chunk looks again, and finds a later lease
             └─► LEFT        it finds unreadable progress

    STOPPED ─┬─► WAITING     a failed claim undoes the stop
             ├─► RUNNING     a failed chunk undoes it, too
             ├─► COMPLETE    the same, and its end is found to be stored
             ├─► REVOKED     the same, and a later lease is found
             └─► LEFT        the same, and unreadable progress is found

    YIELDED ─┬─► RUNNING     a failed chunk undoes the end
             ├─► COMPLETE    the same, and its end is found to be stored
             ├─► STOPPED     the end cannot be stored, as the worker cannot go on
             ├─► REVOKED     a failed chunk finds a later lease
             └─► LEFT        it finds unreadable progress

    LEFT ────┬─► WAITING     a further try at the claim can read the progress
             └─► REVOKED     it finds a later lease
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from airflow_provider_kpipe.contract.clean_text import cleaned
from airflow_provider_kpipe.contract.offsets.completed import CompletedOffsets, Span, Spans
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import (
    Counts,
    Ending,
    PartitionProgress,
    Pieces,
    RangeProgress,
    StoredProgress,
)
from kpipe_engine.errors import KnownFaults, PartitionHaltedError, PipelineHaltedError


class Phase(Enum):
    """Phase of a range's life in a worker."""

    WAITING = "waiting"
    RUNNING = "running"
    COMPLETE = "complete"
    STOPPED = "stopped"
    YIELDED = "yielded"
    REVOKED = "revoked"
    LEFT = "left"


_ENDINGS: Mapping[Phase, Ending] = {
    Phase.STOPPED: "stopped",
    Phase.YIELDED: "yielded",
    Phase.REVOKED: "revoked",
    Phase.LEFT: "stopped",
}
_AT_WORK = frozenset((Phase.WAITING, Phase.RUNNING))
_ENDED = frozenset(_ENDINGS)
# The docstring of the module draws these, and says when each happens.
_NEXT: Mapping[Phase, frozenset[Phase]] = {
    Phase.WAITING: frozenset((Phase.RUNNING, Phase.COMPLETE, Phase.STOPPED, Phase.REVOKED, Phase.LEFT)),
    Phase.RUNNING: frozenset((Phase.COMPLETE, Phase.STOPPED, Phase.YIELDED, Phase.REVOKED, Phase.LEFT)),
    # Until an end is stored, a failed chunk undoes it, and what is stored by then decides.
    Phase.STOPPED: frozenset((Phase.WAITING, Phase.RUNNING, Phase.COMPLETE, Phase.REVOKED, Phase.LEFT)),
    Phase.YIELDED: frozenset((Phase.RUNNING, Phase.COMPLETE, Phase.STOPPED, Phase.REVOKED, Phase.LEFT)),
    # Our lease was never stored: a further attempt at claiming may find something else.
    Phase.LEFT: frozenset((Phase.WAITING, Phase.REVOKED)),
    Phase.COMPLETE: frozenset(),
    Phase.REVOKED: frozenset(),
}


class RangeState:
    """State of a range: the handled part, the stored part of that, and the reason why the range ended, if it did.

    Everything below `handled` is terminal once the chunk is acknowledged; everything below `stored` is terminal.
    """

    def __init__(self, planned: PartitionRange, pieces: int = 1) -> None:
        self.range = planned
        self.pieces = pieces
        self.partition = planned.partition
        self.known_faults: KnownFaults = {}
        self._suspect_until = 0
        self.phase, self.is_claimed = Phase.WAITING, False
        self.resume(PartitionProgress.not_started(planned))

    def resume(self, progress: PartitionProgress, unsettled: Pieces | None = None) -> None:
        """Resume at the stored progress, and forget the rest.

        :param unsettled: pieces in which an earlier run had the partition, and may still work on it
        """
        self.unsettled = unsettled
        self.counts = progress.counts.copy()
        self.stored = self.handled = progress.next_offset
        self.work = RangeProgress(**progress.carried)
        self._stops_run = self._end_is_stored = False
        self.reason: str | None = None
        # A partition that stopped in an earlier attempt is tried again; one that was revoked is gone.
        if progress.ended == "revoked":
            self._end(Phase.REVOKED, progress.reason or "")
        else:
            self._turn(self._phase_at_work)

    def claim(self) -> None:
        """Note that our lease is stored beside the offset."""
        self.is_claimed = True
        if self.phase is Phase.WAITING:
            self._turn(self._phase_at_work)

    @property
    def _phase_at_work(self) -> Phase:
        if not self.is_claimed:
            return Phase.WAITING
        return Phase.RUNNING if self.stored < self.range.end else Phase.COMPLETE

    def _turn(self, phase: Phase) -> None:
        if phase is not self.phase and phase not in _NEXT[self.phase]:
            raise AssertionError(f"{self.range} is {self.phase.value}, and cannot become {phase.value}")
        self.phase = phase

    def _end(self, phase: Phase, reason: str) -> None:
        self._turn(phase)
        # The reason quotes records and errors, and may contain any text that they contain.
        self.reason = cleaned(reason)

    def take_over(self, done: Iterable[Span], counts: Counts) -> None:
        """Take over the settled pieces of an earlier run. The spans that they have done need no reading."""
        self.unsettled = None
        completed = CompletedOffsets(-1, (*self.work.done, *done)).beyond
        self.work = replace(self.work, done=completed, inherited=self.work.inherited + counts)

    def advance(self, next_offset: int) -> None:
        """Move on to an offset: every record before it is handled, if there is any."""
        self.handled = next_offset

    def lose(self, records: int) -> None:
        """Count records that are passed over because they were lost before they were read."""
        self.counts.lost += records

    def spend(self, seconds: float) -> None:
        self.work = replace(self.work, seconds=self.work.seconds + seconds)

    def learn(self, faults: KnownFaults) -> bool:
        """Note the records that made a chunk fail, and tell whether any of them is new."""
        before = len(self.known_faults)
        self.known_faults = {**self.known_faults, **faults}
        return len(self.known_faults) > before

    def suspect(self) -> None:
        """Suspect all that a failed chunk had of this range: more of its records may make a chunk fail."""
        self._suspect_until = max(self._suspect_until, self.handled)

    def forget_faults(self) -> None:
        """Forget the faults of records that are behind."""
        self.known_faults = {at: fault for at, fault in self.known_faults.items() if at >= self.handled}

    @property
    def is_suspect(self) -> bool:
        """Tell whether suspected records lie ahead."""
        return self.is_working and self.handled < self._suspect_until

    def room(self, most: int) -> int:
        """Return the room in a chunk. A redone one ends behind its last known fault, before another fault undoes it."""
        return min(most, max(self.known_faults) + 1 - self.handled) if self.known_faults else most

    @property
    def is_at_known_fault(self) -> bool:
        """Tell whether the last record known to fault is handled."""
        return bool(self.known_faults) and self.handled > max(self.known_faults)

    def stop(self, stop: PartitionHaltedError) -> None:
        """End the range at a fault: the records before it are terminal."""
        self.stop_short(str(stop))
        if stop.next_offset is not None:
            self.advance(stop.next_offset)
        self._stops_run = isinstance(stop, PipelineHaltedError)

    def stop_short(self, reason: str) -> None:
        """End the range at the last handled record, for a reason that is none of its own records."""
        self._end(Phase.STOPPED, reason)

    def give_up(self, reason: str) -> None:
        """Yield the range at the last handled record: another run resumes there."""
        self._end(Phase.YIELDED, reason)

    def leave(self, reason: str) -> None:
        """Leave the stored progress to the version of kpipe that can read it, or to the pipeline that owns it."""
        self._end(Phase.LEFT, reason)

    @property
    def ended(self) -> Ending | None:
        """The way in which the range has ended early, if it has."""
        return _ENDINGS.get(self.phase)

    @property
    def is_revoked(self) -> bool:
        """Tell whether another worker owns the range by now."""
        return self.phase is Phase.REVOKED

    @property
    def is_ours(self) -> bool:
        """Tell whether we may overwrite the stored progress."""
        return self.phase not in (Phase.REVOKED, Phase.LEFT)

    @property
    def is_working(self) -> bool:
        return self.phase in _AT_WORK and self.stored < self.range.end

    @property
    def is_settled(self) -> bool:
        """Tell whether nothing is left to do or to store.

        A range that a fault has ended is settled only once that is stored: a failed chunk undoes a partition's end.
        """
        return not (self.is_working or self.needs_store)

    @property
    def needs_store(self) -> bool:
        """Tell whether there is something to store: an offset, or the end of the range."""
        if not self.is_ours:
            return False
        return self.handled != self.stored or (self.phase in _ENDED and not self._end_is_stored)

    def to_stored_progress(self, plan: Plan, lease: Lease) -> StoredProgress:
        return StoredProgress(
            run_key=plan.run_key,
            number=plan.number,
            topic_id=plan.topic_id,
            origin=self.range.origin,
            start=self.range.start,
            end=self.range.end,
            counts=self.counts,
            owner=plan.owner,
            stops_run=self._stops_run,
            lease=lease,
            pieces=self.pieces,
            unsettled=self.unsettled,
            **self._carried(seconds=round(self.work.seconds, 3)),
        )

    def _carried(self, **changes: Any) -> dict[str, Any]:
        return replace(self.work, reason=self.reason, ended=self.ended, **changes).carried

    def mark_stored(self) -> None:
        """Note that the handled part, and the end if there is one, are stored."""
        self.stored, self._end_is_stored = self.handled, self.phase in _ENDED
        if self.phase in _AT_WORK:
            self._turn(self._phase_at_work)

    @property
    def skips(self) -> Spans:
        """Spans that need no reading."""
        return (*self.range.done, *self.work.done)

    @property
    def progress(self) -> PartitionProgress:
        return PartitionProgress(self.range, self.stored, self.counts, **self._carried())
