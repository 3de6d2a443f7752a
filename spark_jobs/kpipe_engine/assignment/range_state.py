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
    """Where a range stands: what is handled, what of it is stored, and why it ended, if it did.

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
        """From what is stored: what is not is forgotten.

        :param unsettled: pieces in which a run before had the partition, and may still be at work
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
        """Another version of kpipe has stored something for it that this one cannot read."""

    def take_over(self, done: Iterable[Span], counts: Counts) -> None:
        """The pieces of the run before are settled. What they have done needs no reading."""
        self.unsettled = None
        self.done = CompletedOffsets(-1, (*self.done, *done)).beyond
        self.inherited += counts

    def advance(self, next_offset: int) -> None:
        """What lies before it is handled, or there is nothing to handle."""
        self.handled = next_offset

    def lose(self, records: int) -> None:
        """They had left the topic before they were read, and are passed over."""
        self.counts.lost += records

    def spend(self, seconds: float) -> None:
        self.seconds += seconds

    def learn(self, faults: KnownFaults) -> bool:
        """After a chunk that came to nothing: which records made it fail. Whether that is news."""
        before = len(self.known_faults)
        self.known_faults = {**self.known_faults, **faults}
        return len(self.known_faults) > before

    def suspect(self) -> None:
        """What a chunk that came to nothing had of this range may hold more that makes one fail."""
        self._suspect_until = max(self._suspect_until, self.handled)

    def forget_faults(self) -> None:
        """Of records that are behind."""
        self.known_faults = {at: fault for at, fault in self.known_faults.items() if at >= self.handled}

    @property
    def is_suspect(self) -> bool:
        """Whether some of that lies ahead."""
        return self.works and self.handled < self._suspect_until

    def room(self, most: int) -> int:
        """A chunk that is redone ends behind the last record known to fault: what another one would undo is stored."""
        return min(most, max(self.known_faults) + 1 - self.handled) if self.known_faults else most

    @property
    def is_at_known_fault(self) -> bool:
        """Whether the last record known to fault is handled."""
        return bool(self.known_faults) and self.handled > max(self.known_faults)

    def end(self, ended: Ending, reason: str) -> None:
        # It is about records and errors: it may hold whatever they hold.
        self.ended, self.reason = ended, cleaned(reason)

    def stop(self, stop: PartitionHaltedError) -> None:
        """At a fault: what lies before it is terminal."""
        self.end("stopped", str(stop))
        if stop.next_offset is not None:
            self.advance(stop.next_offset)
        self._stops_run = isinstance(stop, PipelineHaltedError)

    def leave(self, reason: str) -> None:
        """To the version of kpipe that can read what is stored for it."""
        self.end("stopped", reason)
        self.is_unreadable = True

    @property
    def is_revoked(self) -> bool:
        """Whether it is somebody else's by now."""
        return self.ended == "revoked"

    @property
    def is_ours(self) -> bool:
        """Whether we may write over what is stored for it."""
        return not (self.is_revoked or self.is_unreadable)

    @property
    def works(self) -> bool:
        return self.ended is None and self.stored < self.range.end

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to do or to store. What a fault has ended is done only once that is stored: a chunk
        that comes to nothing takes the end of a partition with it."""
        return not (self.works or self.has_news)

    @property
    def has_news(self) -> bool:
        """Whether there is something to store: an offset, or that it ended."""
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
