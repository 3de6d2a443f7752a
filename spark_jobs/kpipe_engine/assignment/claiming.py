"""Ownership of a partition: the stored lease of its owner, and a worker's own claim to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from confluent_kafka import TopicPartition

from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.completed import CompletedOffsets, Span
from airflow_provider_kpipe.contract.offsets.metadata import most_spans
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress, Pieces, StoredProgress
from airflow_provider_kpipe.contract.progress.resuming import is_of_another_pipeline, is_published, progress_of, take_on
from airflow_provider_kpipe.contract.progress.standing import Stored, completed_in_pieces
from kpipe_engine.assignment.progress_store import ProgressStore, stored_beside
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.client_settings import Settings
from kpipe_engine.reading.checkpoints import Checkpoints


class Claims:
    """Claims of a worker to partitions, by leases beside stored offsets. A later lease makes it leave the partition.

    For a partition that is cut into pieces, the lease beside the first piece counts for the workers of all pieces.
    """

    def __init__(
        self,
        job: Job,
        lease: Lease,
        slot: int,
        store: ProgressStore,
        settings: Settings,
        fence: Callable[[Iterable[str]], None] | None,
    ) -> None:
        """
        :param fence: fences the writers of these transactional ids, if the delivery has such writers
        """
        self._plan, self._lease, self._slot = job.plan, lease, slot
        self._checkpointed = frozenset(job.checkpointed)
        self._reported: set[int] = set()
        self._store, self._settings, self._fence = store, settings, fence

    def read_stored(self, states: Sequence[RangeState]) -> list[RangeState]:
        """Resume each range at its stored offset, or revoke it if another worker owns it by now.

        Return the ranges that an earlier run had in pieces: `adopt_pieces` takes them once our lease is stored.
        """
        partitions = [state.partition for state in states]
        held = self._store.held(partitions, self._slot)
        checkpoints = Checkpoints(self._settings, self._plan, partitions)
        if self._slot == 0:
            for state in states:
                with _left_if_unreadable(state):
                    self._first(state, self._store.stored(held[state.partition], self._slot), checkpoints)
            return [state for state in states if state.is_ours and state.unsettled]
        claims = self._store.held(partitions, 0)
        for state in states:
            with _left_if_unreadable(state):
                found = self._store.stored(held[state.partition], self._slot)
                claim = stored_beside(claims[state.partition])
                state.resume(self._further(state, found, claim, checkpoints))
            self._stop_if_crowded(state)
        return []

    def adopt_pieces(self, states: Sequence[RangeState]) -> None:
        """Take over pieces of an earlier run. Our lease keeps new ones from beginning; those that began are fenced."""
        for state in states:
            if (unsettled := state.unsettled) is None:
                continue
            if self._fence is not None:
                # Our own writer has fenced that of the first piece.
                self._fence(self._plan.transactional_id(state.partition, at) for at in range(1, unsettled.count))
            with _left_if_unreadable(state):
                found = self._store.pieces(state.partition, unsettled.count)
                unreported = [
                    each.progress.counts for each in found if self._is_unreported(state, unsettled, each.progress)
                ]
                state.take_over(self._completed(state, found), sum(unreported, Counts()))
            self._stop_if_crowded(state)

    def lost(self, partitions: Sequence[int]) -> list[int]:
        """Return the partitions on which a later lease lies."""
        held = self._store.held(partitions, self._slot)
        claims = self._store.held(partitions, 0) if self._slot else {}
        return [at for at in partitions if self._is_lost(held[at], claims.get(at))]

    def _is_lost(self, held: TopicPartition, claim: TopicPartition | None) -> bool:
        try:
            return self._is_later(stored_beside(held)) or (
                claim is not None and not self._is_claimed(stored_beside(claim))
            )
        except DocumentError:
            # The next look finds the reason.
            return True

    def _first(self, state: RangeState, found: Stored | None, checkpoints: Checkpoints) -> None:
        unsettled = None
        if found is not None and is_of_another_pipeline(state.range, self._plan, found):
            state.leave(
                f"partition {state.partition} of group {self._plan.working_group!r} belongs to pipeline "
                f"{found.progress.owner!r}, and this one is {self._plan.owner!r}: give it a group_id of its own"
            )
            return
        reached = None
        if self._is_checkpointed(state) or self._may_be_reported(state, found):
            reached = checkpoints.reached(state.partition)
        if found is not None and not self._is_later(found):
            unsettled = self._unsettled(found.progress)
            pieces = self._store.pieces(state.partition, unsettled.count) if unsettled else []
            if is_published(state.range, found.offset, reached):
                self._reported.add(state.partition)
            found = replace(found, pieces=tuple(self._completed(state, pieces)))
        state.resume(take_on(state.range, self._plan, self._lease, found, reached), unsettled)
        self._stop_if_crowded(state)

    def _is_checkpointed(self, state: RangeState) -> bool:
        return state.partition in self._checkpointed

    def _may_be_reported(self, state: RangeState, found: Stored | None) -> bool:
        """Tell whether another run's checkpoint may have come since our attempt began, and reported its counts."""
        if found is None or not found.progress.is_in(self._plan.topic_id, state.range.origin):
            return False
        is_own = found.progress.is_of(self._plan.run_key, self._plan.number)
        return not (is_own or is_published(state.range, found.offset))

    def _stop_if_crowded(self, state: RangeState) -> None:
        """Stop the range if another run may have taken the room that the plan left for the spans of its pieces."""
        spans, room = CompletedOffsets(-1, state.skips).beyond, most_spans(self._plan.metadata_bytes) + 1
        if state.is_working and state.pieces > 1 and len(spans) + state.pieces - 1 > room:
            state.stop_short(
                f"runs that stopped half-way have left {len(spans)} spans of completed offsets, and those of "
                f"{state.pieces} more pieces would not fit beside an offset: start a new run, which closes gaps first",
            )

    def _unsettled(self, found: StoredProgress) -> Pieces | None:
        if found.unsettled is not None:
            # The worker that took the partition on ended before it settled these, and never began pieces of its own.
            return found.unsettled
        if found.pieces == 1 or found.is_of(self._plan.run_key, self._plan.number):
            return None
        return Pieces(found.number, found.pieces)

    def _further(
        self, state: RangeState, found: Stored | None, claim: Stored | None, checkpoints: Checkpoints
    ) -> PartitionProgress:
        if not self._is_claimed(claim) or self._is_later(found):
            return PartitionProgress.revoked(state.range, claim.progress.run_key if claim else None)
        reached = checkpoints.reached(state.partition) if self._is_checkpointed(state) else None
        progress = progress_of(state.range, self._plan, found, reached)
        return progress.with_done(claim.progress.done if claim else ())

    def _is_later(self, found: Stored | None) -> bool:
        """Tell whether a newer run, or a newer try of this task, has put its lease in the place of ours."""
        return found is not None and found.progress.lease > self._lease

    def _is_claimed(self, claim: Stored | None) -> bool:
        """Tell whether the lease beside the first piece is that of our attempt, which stores it before all else."""
        return claim is not None and claim.progress.lease.of_attempt == self._lease.of_attempt

    def _completed(self, state: RangeState, pieces: Sequence[Stored]) -> list[Span]:
        return completed_in_pieces(
            self._plan.topic_id, state.range.origin, ((each.offset, each.progress) for each in pieces)
        )

    def _is_unreported(self, state: RangeState, of: Pieces, piece: StoredProgress) -> bool:
        """Tell whether a piece's counts still have to be inherited, because no checkpoint has reported them.

        A checkpoint that has come since the first piece was stored has reported the counts of all pieces.
        """
        current = piece.is_in(self._plan.topic_id, state.range.origin) and piece.number == of.number
        return current and state.partition not in self._reported


@contextmanager
def _left_if_unreadable(state: RangeState) -> Iterator[None]:
    try:
        yield
    except DocumentError as error:
        state.leave(f"stored progress of partition {state.partition} is unreadable and was left unchanged: {error}")
