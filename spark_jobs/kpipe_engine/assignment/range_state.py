"""One range on its way through a worker."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_provider_kpipe.contract.clean_text import cleaned
from airflow_provider_kpipe.contract.offsets.completed import CompletedOffsets, Span, Spans
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import Counts, Ending, PartitionProgress, Pieces, StoredProgress
from kpipe_engine.errors import KnownFaults, PartitionHaltedError, PipelineHaltedError


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
        self.go_on(PartitionProgress.not_started(planned))

    def go_on(self, progress: PartitionProgress, unsettled: Pieces | None = None) -> None:
        """Resume at the stored progress, and forget the rest.

        :param unsettled: pieces in which an earlier run had the partition, and may still work on it
        """
        self.unsettled = unsettled
        self.counts = progress.counts.copy()
        self.stored = self.handled = progress.next_offset
        self.took_over = progress.took_over
        self.inherited = progress.inherited
        self.done = progress.done
        self.seconds = progress.seconds
        # A partition that stopped in an earlier attempt is tried again; one that was revoked is gone.
        self.ended: Ending | None = "revoked" if progress.ended == "revoked" else None
        self.reason = progress.reason if self.ended else None
        self._stops_run = False
        self._is_told = False
        self.is_unreadable = False
        """Tells whether the stored progress is left as it is: it cannot be read, or is another pipeline's."""

    def take_over(self, done: Iterable[Span], counts: Counts) -> None:
        """Take over the settled pieces of an earlier run. The spans that they have done need no reading."""
        self.unsettled = None
        self.done = CompletedOffsets(-1, (*self.done, *done)).beyond
        self.inherited += counts

    def advance(self, next_offset: int) -> None:
        """Move on to an offset: every record before it is handled, if there is any."""
        self.handled = next_offset

    def lose(self, records: int) -> None:
        """Count records that are passed over because they were lost before they were read."""
        self.counts.lost += records

    def spend(self, seconds: float) -> None:
        self.seconds += seconds

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
        return self.works and self.handled < self._suspect_until

    def room(self, most: int) -> int:
        """Return the room in a chunk. A redone one ends behind its last known fault, before another fault undoes it."""
        return min(most, max(self.known_faults) + 1 - self.handled) if self.known_faults else most

    @property
    def is_at_known_fault(self) -> bool:
        """Tell whether the last record known to fault is handled."""
        return bool(self.known_faults) and self.handled > max(self.known_faults)

    def end(self, ended: Ending, reason: str) -> None:
        # The reason quotes records and errors, and may contain any text that they contain.
        self.ended, self.reason = ended, cleaned(reason)

    def stop(self, stop: PartitionHaltedError) -> None:
        """End the range at a fault: the records before it are terminal."""
        self.end("stopped", str(stop))
        if stop.next_offset is not None:
            self.advance(stop.next_offset)
        self._stops_run = isinstance(stop, PipelineHaltedError)

    def leave(self, reason: str) -> None:
        """Leave the stored progress to the version of kpipe that can read it, or to the pipeline that owns it."""
        self.end("stopped", reason)
        self.is_unreadable = True

    @property
    def is_revoked(self) -> bool:
        """Tell whether another worker owns the range by now."""
        return self.ended == "revoked"

    @property
    def is_ours(self) -> bool:
        """Tell whether we may overwrite the stored progress."""
        return not (self.is_revoked or self.is_unreadable)

    @property
    def works(self) -> bool:
        return self.ended is None and self.stored < self.range.end

    @property
    def is_settled(self) -> bool:
        """Tell whether nothing is left to do or to store.

        A range that a fault has ended is settled only once that is stored: a failed chunk undoes a partition's end.
        """
        return not (self.works or self.has_news)

    @property
    def has_news(self) -> bool:
        """Tell whether there is something to store: an offset, or the end of the range."""
        if not self.is_ours:
            return False
        return self.handled != self.stored or (self.ended is not None and not self._is_told)

    def to_store(self, plan: Plan, lease: Lease) -> StoredProgress:
        return StoredProgress(
            run_key=plan.run_key,
            number=plan.number,
            topic_id=plan.topic_id,
            origin=self.range.origin,
            start=self.range.start,
            end=self.range.end,
            counts=self.counts,
            owner=plan.owner,
            reason=self.reason,
            stops_run=self._stops_run,
            ended=self.ended,
            lease=lease,
            took_over=self.took_over,
            inherited=self.inherited,
            pieces=self.pieces,
            unsettled=self.unsettled,
            done=self.done,
            seconds=round(self.seconds, 3),
        )

    def note_stored(self) -> None:
        self.stored, self._is_told = self.handled, self.ended is not None

    @property
    def skips(self) -> Spans:
        """Spans that need no reading."""
        return (*self.range.done, *self.done)

    @property
    def progress(self) -> PartitionProgress:
        return PartitionProgress(
            self.range,
            self.stored,
            self.counts,
            reason=self.reason,
            ended=self.ended,
            took_over=self.took_over,
            inherited=self.inherited,
            done=self.done,
            seconds=self.seconds,
        )
