"""Reads who owns the partitions of a worker, and writes down that it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from airflow_provider_kpipe.contract.completed_offsets import Span
from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.lease import Lease
from airflow_provider_kpipe.contract.ownership import completed_in_pieces, take_on, takes_over
from airflow_provider_kpipe.contract.plan import progress_group_of
from airflow_provider_kpipe.contract.progress import PartitionProgress, StoredProgress
from airflow_provider_kpipe.contract.strict_json import DocumentError
from kpipe_engine.clients import ANSWER_SECONDS, client_settings, group_reader, let_go
from kpipe_engine.errors import needing
from kpipe_engine.lane import Lane
from kpipe_engine.source import Source


class PiecesBefore(NamedTuple):
    """A run before ours had the partition of a lane in pieces, which may still be at work."""

    lane: Lane
    run_key: str | None
    planned_at: str | None
    """When its plan was made, where that is known."""
    pieces: int
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

    def look(self, lanes: Sequence[Lane]) -> list[PiecesBefore]:
        """Have each lane go on from what is stored, or be revoked if it is somebody else's by now.

        Pieces in which a run before had one of them are to be looked at again once our lease is there.
        """
        held = self._held([lane.partition for lane in lanes], self._slot)
        if self._slot == 0:
            before = []
            for lane in lanes:
                with _left_if_unreadable(lane):
                    before.append(self._first(lane, held[lane.partition]))
            return [each for each in before if each is not None]
        claims = self._held([lane.partition for lane in lanes], 0)
        for lane in lanes:
            with _left_if_unreadable(lane):
                lane.go_on(self._further(lane, held[lane.partition], claims[lane.partition]))
        return []

    def look_again(self, pieces: Sequence[PiecesBefore]) -> None:
        """Now that our lease is there, none of them begins any more; those that have are fenced, and count."""
        for before in pieces:
            if self._fences:
                self._fence(before)
            with _left_if_unreadable(before.lane):
                before.lane.take_over(tuple(self._completed_in_pieces(before)), before.run_key)

    def lost(self, partitions: Sequence[int]) -> list[int]:
        """Those on which a later lease lies."""
        held = self._held(partitions, self._slot)
        claims = self._held(partitions, 0) if self._slot else {}
        return [at for at in partitions if self._is_lost(held[at], claims.get(at))]

    def _is_lost(self, held: TopicPartition, claim: TopicPartition | None) -> bool:
        try:
            return self._is_later(_lease_beside(held)) or (claim is not None and self._is_claimed(_lease_beside(claim)))
        except DocumentError:
            # Whoever looks again gets to know why.
            return True

    def positions(self, lanes: Iterable[Lane]) -> list[TopicPartition]:
        """What is stored for each: its offset, and our lease on it."""
        return [
            TopicPartition(
                self._plan.topic,
                lane.partition,
                lane.handled,
                lane.to_store(self._plan, self._lease).to_metadata(),
            )
            for lane in lanes
        ]

    def _first(self, lane: Lane, held: TopicPartition) -> PiecesBefore | None:
        stored, found = _stored(held), StoredProgress.read_text(held.metadata)
        before = None
        if found is not None and not self._is_later(found.lease):
            before = self._pieces_before(lane, found)
        others = self._completed_in_pieces(before) if before else []
        progress = take_on(lane.range, self._plan, self._lease, stored, held.metadata, others)
        lane.go_on(progress, before.pieces if before else 1)
        return before

    def _pieces_before(self, lane: Lane, found: StoredProgress) -> PiecesBefore | None:
        ours = found.is_of(self._plan.run_key, self._plan.created_at)
        counts = ours or takes_over(lane.range, self._plan, found)
        if found.unsettled_pieces > 1:
            # Whoever took the partition on did not come to the end of it.
            return PiecesBefore(lane, found.took_over, None, found.unsettled_pieces, counts)
        if ours or found.pieces == 1:
            return None
        return PiecesBefore(lane, found.run_key, found.planned_at, found.pieces, counts)

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

    def _completed_in_pieces(self, before: PiecesBefore) -> list[Span]:
        """Beyond the first piece, if that counts for our run."""
        slots, partition = range(1, before.pieces) if before.counts else (), before.lane.partition
        held = [self._held([partition], slot)[partition] for slot in slots]
        return completed_in_pieces(before.run_key, before.planned_at, ((each.offset, each.metadata) for each in held))

    def _fence(self, before: PiecesBefore) -> None:
        """The writers of all pieces beyond the first, which our own writer has fenced."""
        for slot in range(1, before.pieces):
            writer = self._plan.transactional_id(before.lane.partition, slot)
            settings = client_settings({"log_level": 3, **self._settings.destination})
            producer = Producer({**settings, "transactional.id": writer})
            try:
                with needing(transactional_id=writer):
                    producer.init_transactions(ANSWER_SECONDS)
            finally:
                let_go(producer)

    def _held(self, partitions: Sequence[int], slot: int) -> dict[int, TopicPartition]:
        """What the group of a slot holds."""
        asked = [TopicPartition(self._plan.topic, partition) for partition in partitions]
        own = slot == self._slot
        consumer = self._source.consumer if own else group_reader(self._settings.source, self._plan, slot)
        try:
            with needing(group=progress_group_of(self._plan.group, slot), topic=self._plan.topic):
                answers = _committed(consumer, asked)
        finally:
            if not own:
                let_go(consumer)
        return {each.partition: each for each in answers}


def _committed(consumer: Consumer, asked: list[TopicPartition]) -> list[TopicPartition]:
    try:
        answers = consumer.committed(asked, timeout=ANSWER_SECONDS)
    except KafkaException as failure:
        # The coordinator of a group that may not be used is never found, and why is only said beside. What else comes
        # here is read again: after a failure, the consumer is a new one.
        for event in consumer.consume(1, 0):
            if (error := event.error()) is not None:
                raise KafkaException(error) from failure
        raise
    for each in answers:
        if each.error is not None:
            raise KafkaException(each.error)
    return answers


@contextmanager
def _left_if_unreadable(lane: Lane) -> Iterator[None]:
    try:
        yield
    except DocumentError as error:
        lane.leave(f"what is stored for partition {lane.partition} cannot be read, and is left as it is: {error}")


def _lease_beside(held: TopicPartition) -> Lease | None:
    found = StoredProgress.read_text(held.metadata)
    return found.lease if found else None


def _stored(held: TopicPartition) -> int | None:
    return held.offset if held.offset >= 0 else None
