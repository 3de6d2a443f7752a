"""Reads who owns the partitions of a worker, and writes down that it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from confluent_kafka import KafkaException, Producer, TopicPartition

from airflow_provider_kpipe.contract.completed_offsets import Span
from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.lease import Lease
from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.ownership import completed_in_pieces, take_on, takes_over
from airflow_provider_kpipe.contract.progress import PartitionProgress, StoredProgress
from kpipe_engine.clients import ANSWER_SECONDS, QUICK_START, group_reader
from kpipe_engine.lane import Lane
from kpipe_engine.source import Source


class _PiecesBefore(NamedTuple):
    """A run before ours had the partition in pieces, which may still be at work."""

    run_key: str | None
    planned_at: str | None
    """When its plan was made, where that is known."""
    slots: int
    counts: bool
    """Whether our run goes on from what they have done."""


class Ownership:
    """A lease lies beside each stored offset. Whoever finds a later one than its own leaves the partition alone.

    Of a partition that is cut into pieces, the lease beside the first piece is everybody's.
    """

    def __init__(self, job: Job, task: int, slot: int, source: Source, settings: KafkaSettings) -> None:
        self._plan, self._lease, self._slot = job.plan, job.lease(task), slot
        self._fences = job.pipeline.delivery == "exactly_once"
        self._source, self._settings = source, settings
        self._before: dict[int, _PiecesBefore] = {}

    def look(self, lanes: Sequence[Lane]) -> list[Lane]:
        """Have each lane go on from what is stored; those that are somebody else's by now are returned."""
        held = self._held([lane.partition for lane in lanes], self._slot)
        claims = held if self._slot == 0 else self._held([lane.partition for lane in lanes], 0)
        for lane in lanes:
            mine, claim = held[lane.partition], claims[lane.partition]
            lane.go_on(self._first(lane, mine) if self._slot == 0 else self._further(lane, mine, claim))
        return [lane for lane in lanes if lane.ended == "revoked"]

    def look_again(self, lanes: Sequence[Lane]) -> list[Lane]:
        """Now that our lease is there, no piece of a run before begins any more; those that have are fenced, and count.

        The lanes of which that has to be stored are returned.
        """
        late = [lane for lane in lanes if lane.partition in self._before]
        for lane in late:
            before = self._before.pop(lane.partition)
            if self._fences:
                self._fence(lane.partition, before.slots)
            done = self._completed_in_pieces(lane.partition, before)
            lane.done = (*lane.done, *(span for span in done if span not in lane.done))
            lane.unsettled_slots = 1
            if done:
                lane.took_over = lane.took_over or before.run_key
        return late

    def lost(self, partitions: Sequence[int]) -> list[int]:
        """Those on which a later lease lies."""
        later = [at for at, held in self._held(partitions, self._slot).items() if self._is_later(_lease_beside(held))]
        if self._slot:
            claims = self._held(partitions, 0)
            later += [at for at, claim in claims.items() if at not in later and self._is_claimed(_lease_beside(claim))]
        return later

    def position(self, lane: Lane) -> TopicPartition:
        """What is stored for a lane: its offset, and our lease on it."""
        metadata = lane.to_store(self._plan, self._lease).to_metadata()
        return TopicPartition(self._plan.topic, lane.partition, lane.handled, metadata)

    def _first(self, lane: Lane, held: TopicPartition) -> PartitionProgress:
        stored, found = _stored(held), StoredProgress.read_text(held.metadata)
        others: list[Span] = []
        lane.unsettled_slots = 1
        if found is not None and not self._is_later(found.lease):
            before = self._pieces_before(lane.range, found)
            if before.slots > 1:
                self._before[lane.partition], lane.unsettled_slots = before, before.slots
                others = self._completed_in_pieces(lane.partition, before)
        return take_on(lane.range, self._plan, self._lease, stored, held.metadata, others)

    def _pieces_before(self, planned: PartitionRange, found: StoredProgress) -> _PiecesBefore:
        ours = found.is_of(self._plan.run_key, self._plan.created_at)
        counts = ours or takes_over(planned, self._plan, found)
        if found.unsettled_slots > 1:
            # Whoever took the partition on did not come to the end of it.
            return _PiecesBefore(found.took_over, None, found.unsettled_slots, counts)
        return _PiecesBefore(found.run_key, found.planned_at, 1 if ours else found.slots, counts)

    def _further(self, lane: Lane, held: TopicPartition, claim: TopicPartition) -> PartitionProgress:
        claimed = StoredProgress.read_text(claim.metadata)
        if (
            claimed is None
            or claimed.lease is None
            or self._is_claimed(claimed.lease)
            or self._is_later(_lease_beside(held))
        ):
            owner = claimed.run_key if claimed else "that nobody knows"
            return PartitionProgress.revoked(lane.range, owner)
        plan = self._plan
        found = PartitionProgress.of(lane.range, plan.run_key, _stored(held), held.metadata, plan.created_at)
        return found.with_done(claimed.done)

    def _is_later(self, lease: Lease | None) -> bool:
        """Whether somebody has put it where ours belongs: a newer run, or a newer try of this task."""
        return lease is not None and lease > self._lease

    def _is_claimed(self, lease: Lease | None) -> bool:
        """Whether the lease beside the first piece is that of a newer run or attempt."""
        return lease is not None and lease.of_attempt > self._lease.of_attempt

    def _completed_in_pieces(self, partition: int, before: _PiecesBefore) -> list[Span]:
        """What a run before has completed beyond its first piece, if that counts for ours."""
        slots = range(1, before.slots) if before.counts else ()
        held = [self._held([partition], slot)[partition] for slot in slots]
        return completed_in_pieces(before.run_key, before.planned_at, ((each.offset, each.metadata) for each in held))

    def _fence(self, partition: int, slots: int) -> None:
        """The writers of all pieces beyond the first, which our own writer has fenced."""
        for slot in range(1, slots):
            writer = self._plan.transactional_id(partition, slot)
            settings = {**QUICK_START, "log_level": 3, **self._settings.destination}
            producer = Producer({**settings, "transactional.id": writer})
            producer.init_transactions(ANSWER_SECONDS)

    def _held(self, partitions: Sequence[int], slot: int) -> dict[int, TopicPartition]:
        """What the group of a slot holds."""
        asked = [TopicPartition(self._plan.topic, partition) for partition in partitions]
        own = slot == self._slot
        consumer = self._source.consumer if own else group_reader(self._settings.source, self._plan, slot)
        try:
            answers = consumer.committed(asked, timeout=ANSWER_SECONDS)
        finally:
            if not own:
                consumer.close()
        for each in answers:
            if each.error is not None:
                raise KafkaException(each.error)
        return {each.partition: each for each in answers}


def _lease_beside(held: TopicPartition) -> Lease | None:
    found = StoredProgress.read_text(held.metadata)
    return found.lease if found else None


def _stored(held: TopicPartition) -> int | None:
    return held.offset if held.offset >= 0 else None
