"""Reads which worker owns a partition, and stores a worker's claim to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from confluent_kafka import Producer, TopicPartition

from airflow_provider_kpipe.contract.connecting import connecting
from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.offsets.completed import CompletedOffsets, Span
from airflow_provider_kpipe.contract.offsets.metadata import most_spans
from airflow_provider_kpipe.contract.progress.details import fit, with_details
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress, Pieces, StoredProgress
from airflow_provider_kpipe.contract.progress.resuming import is_of_another_pipeline, is_published, progress_of, take_on
from airflow_provider_kpipe.contract.progress.standing import Stored, completed_in_pieces
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.client_settings import ANSWER_SECONDS, group_reader, let_go
from kpipe_engine.errors import needing
from kpipe_engine.reading.checkpoints import Checkpoints
from kpipe_engine.reading.details_group import DetailsGroup
from kpipe_engine.reading.held_offsets import held_offsets
from kpipe_engine.reading.range_reader import RangeReader


class Positions(NamedTuple):
    """Offsets that are stored together, with the progress beside them, and the details that did not fit there."""

    progress: list[TopicPartition]
    details: list[TopicPartition]


class Claims:
    """Claims partitions by a lease beside each stored offset. A worker that finds a later lease leaves the partition.

    For a partition that is cut into pieces, the lease beside the first piece counts for the workers of all pieces.
    """

    def __init__(self, job: Job, task: int, slot: int, source: RangeReader, settings: KafkaSettings) -> None:
        self._plan, self._lease, self._slot = job.plan, job.lease(task), slot
        self._fences = job.pipeline.delivery == "exactly_once"
        self._checkpointed = frozenset(job.checkpointed)
        self._told: set[int] = set()
        self._source, self._settings = source, settings

    def look(self, states: Sequence[RangeState]) -> list[RangeState]:
        """Resume each range at its stored offset, or revoke it if another worker owns it by now.

        Return the ranges that an earlier run had in pieces: `look_again` takes them once our lease is stored.
        """
        partitions = [state.partition for state in states]
        held = self._held(partitions, self._slot)
        checkpoints = Checkpoints(self._settings.source, self._plan, partitions)
        if self._slot == 0:
            for state in states:
                with _left_if_unreadable(state):
                    self._first(state, self._stored(held[state.partition], self._slot), checkpoints)
            return [state for state in states if state.is_ours and state.unsettled]
        claims = self._held(partitions, 0)
        for state in states:
            with _left_if_unreadable(state):
                found, claim = self._stored(held[state.partition], self._slot), _stored_in(claims[state.partition])
                state.go_on(self._further(state, found, claim, checkpoints))
            self._stop_if_crowded(state)
        return []

    def look_again(self, states: Sequence[RangeState]) -> None:
        """Take over pieces of an earlier run. Our lease keeps new ones from beginning; those that began are fenced."""
        for state in states:
            if (unsettled := state.unsettled) is None:
                continue
            if self._fences:
                self._fence(state, unsettled.count)
            with _left_if_unreadable(state):
                found = self._pieces(state, unsettled)
                untold = [each.progress.counts for each in found if self._is_untold(state, unsettled, each.progress)]
                state.take_over(self._completed(state, found), sum(untold, Counts()))
            self._stop_if_crowded(state)

    def lost(self, partitions: Sequence[int]) -> list[int]:
        """Return the partitions on which a later lease lies."""
        held = self._held(partitions, self._slot)
        claims = self._held(partitions, 0) if self._slot else {}
        return [at for at in partitions if self._is_lost(held[at], claims.get(at))]

    def _is_lost(self, held: TopicPartition, claim: TopicPartition | None) -> bool:
        try:
            return self._is_later(_stored_in(held)) or (claim is not None and not self._is_claimed(_stored_in(claim)))
        except DocumentError:
            # The next look finds the reason.
            return True

    def positions(self, states: Iterable[RangeState]) -> Positions:
        """Return the positions to store for the ranges: each with its offset and our lease on it."""
        positions = Positions([], [])
        for state in states:
            where = self._plan.topic, state.partition, state.handled
            fitted = fit(state.to_store(self._plan, self._lease), self._plan.metadata_bytes)
            epoch = state.range.epoch_at(state.handled)
            positions.progress.append(TopicPartition(*where, fitted.progress, leader_epoch=epoch))
            if fitted.details is not None:
                positions.details.append(TopicPartition(*where, fitted.details))
        return positions

    def _first(self, state: RangeState, found: Stored | None, checkpoints: Checkpoints) -> None:
        unsettled = None
        if found is not None and is_of_another_pipeline(state.range, self._plan, found):
            state.leave(
                f"partition {state.partition} of group {self._plan.working_group!r} belongs to pipeline "
                f"{found.progress.owner!r}, and this one is {self._plan.owner!r}: give it a group_id of its own"
            )
            return
        reached = None
        if self._is_checkpointed(state) or self._may_be_told(state, found):
            reached = checkpoints.reached(state.partition)
        if found is not None and not self._is_later(found):
            unsettled = self._unsettled(found.progress)
            pieces = self._pieces(state, unsettled) if unsettled else []
            if is_published(state.range, found.offset, reached):
                self._told.add(state.partition)
            found = replace(found, pieces=tuple(self._completed(state, pieces)))
        state.go_on(take_on(state.range, self._plan, self._lease, found, reached), unsettled)
        self._stop_if_crowded(state)

    def _is_checkpointed(self, state: RangeState) -> bool:
        return state.partition in self._checkpointed

    def _may_be_told(self, state: RangeState, found: Stored | None) -> bool:
        """Tell whether another run's checkpoint may have come since our attempt began, and reported its counts."""
        if found is None or not found.progress.is_in(self._plan.topic_id, state.range.origin):
            return False
        is_own = found.progress.is_of(self._plan.run_key, self._plan.number)
        return not (is_own or is_published(state.range, found.offset))

    def _stop_if_crowded(self, state: RangeState) -> None:
        """Stop the range if another run may have taken the room that the plan left for the spans of its pieces."""
        spans, room = CompletedOffsets(-1, state.skips).beyond, most_spans(self._plan.metadata_bytes) + 1
        if state.works and state.pieces > 1 and len(spans) + state.pieces - 1 > room:
            state.end(
                "stopped",
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
            return PartitionProgress.revoked(state.range, claim.progress.run_key if claim else "that nobody knows")
        reached = checkpoints.reached(state.partition) if self._is_checkpointed(state) else None
        progress = progress_of(state.range, self._plan, found, reached)
        return progress.with_done(claim.progress.done if claim else ())

    def _is_later(self, found: Stored | None) -> bool:
        """Tell whether a newer run, or a newer try of this task, has put its lease in the place of ours."""
        return found is not None and found.progress.lease > self._lease

    def _is_claimed(self, claim: Stored | None) -> bool:
        """Tell whether the lease beside the first piece is that of our attempt, which stores it before all else."""
        return claim is not None and claim.progress.lease.of_attempt == self._lease.of_attempt

    def _pieces(self, state: RangeState, of: Pieces) -> list[Stored]:
        """Read the progress of the pieces beyond the first, from any worker."""
        slots = range(1, of.count)
        held = (self._stored(self._held([state.partition], slot)[state.partition], slot) for slot in slots)
        return [each for each in held if each is not None]

    def _completed(self, state: RangeState, pieces: Sequence[Stored]) -> list[Span]:
        return completed_in_pieces(
            self._plan.topic_id, state.range.origin, ((each.offset, each.progress) for each in pieces)
        )

    def _is_untold(self, state: RangeState, of: Pieces, piece: StoredProgress) -> bool:
        """Tell whether a piece's counts still have to be inherited, because no checkpoint has reported them.

        A checkpoint that has come since the first piece was stored has reported the counts of all pieces.
        """
        current = piece.is_in(self._plan.topic_id, state.range.origin) and piece.number == of.number
        return current and state.partition not in self._told

    def _fence(self, state: RangeState, pieces: int) -> None:
        """Fence the writers of all pieces beyond the first; our own writer has fenced that one's."""
        for slot in range(1, pieces):
            writer = self._plan.transactional_id(state.partition, slot)
            settings = connecting({"log_level": 3, **self._settings.destination})
            producer = Producer({**settings, "transactional.id": writer})
            try:
                with needing(transactional_id=writer):
                    producer.init_transactions(ANSWER_SECONDS)
            finally:
                let_go(producer)

    def _stored(self, held: TopicPartition, slot: int) -> Stored | None:
        """Return the stored progress of a partition, with the details that did not fit beside the offset."""
        found = _stored_in(held)
        if found is None or not found.progress.is_detailed:
            return found
        details = DetailsGroup(self._settings.source, self._plan, slot).read(held.partition)
        return replace(found, progress=with_details(found.progress, details))

    def _held(self, partitions: Sequence[int], slot: int) -> dict[int, TopicPartition]:
        """Read the offsets that the group of a slot holds, by partition."""
        asked = [TopicPartition(self._plan.topic, partition) for partition in partitions]
        own = slot == self._slot
        consumer = self._source.consumer if own else group_reader(self._settings.source, self._plan, slot)
        try:
            answers = held_offsets(consumer, self._plan.progress_group(slot), asked, ANSWER_SECONDS)
        finally:
            if not own:
                let_go(consumer)
        return {each.partition: each for each in answers}


def _stored_in(held: TopicPartition) -> Stored | None:
    progress = StoredProgress.read_text(held.metadata)
    return Stored(held.offset, progress) if progress is not None and held.offset >= 0 else None


@contextmanager
def _left_if_unreadable(state: RangeState) -> Iterator[None]:
    try:
        yield
    except DocumentError as error:
        state.leave(f"what is stored for partition {state.partition} cannot be read, and is left as it is: {error}")
