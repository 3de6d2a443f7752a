"""Reads who owns the partitions of a worker, and writes down that it does."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from airflow_provider_kpipe.contract.completed_offsets import Span
from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.ownership import take_on
from airflow_provider_kpipe.contract.plan import progress_group_of
from airflow_provider_kpipe.contract.progress import PartitionProgress, StoredProgress
from kpipe_engine.clients import QUICK_START
from kpipe_engine.lane import Lane
from kpipe_engine.source import Source

ANSWER_SECONDS = 60.0


class Ownership:
    """A lease lies beside each stored offset. Whoever finds a later one than its own leaves the partition alone.

    Of a partition that is cut into pieces, the lease beside the first piece is everybody's.
    """

    def __init__(self, job: Job, task: int, slot: int, source: Source, settings: KafkaSettings) -> None:
        self._plan, self._lease, self._slot = job.plan, job.lease(task), slot
        self._fences = job.pipeline.delivery == "exactly_once"
        self._source, self._settings = source, settings
        self._in_pieces: dict[int, StoredProgress] = {}

    def look(self, lanes: Sequence[Lane]) -> list[Lane]:
        """Have each lane go on from what is stored; those that are somebody else's by now are returned."""
        held = self._held([lane.partition for lane in lanes], self._slot)
        claims = held if self._slot == 0 else self._held([lane.partition for lane in lanes], 0)
        for lane in lanes:
            mine, claim = held[lane.partition], claims[lane.partition]
            lane.go_on(self._first(lane, mine) if self._slot == 0 else self._further(lane, mine, claim))
        return [lane for lane in lanes if lane.ended == "revoked"]

    def look_again(self, lanes: Sequence[Lane]) -> list[Lane]:
        """Once our lease is there, no piece of a run before begins any more; those that have, count.

        The lanes for which there is something new are returned.
        """
        late = []
        for lane in lanes:
            found = self._in_pieces.pop(lane.partition, None)
            done = tuple(self._completed_in_pieces(lane.partition, found)) if found else ()
            if not set(done) <= set(lane.done):
                lane.done = (*lane.done, *done)
                late.append(lane)
        return late

    def lost(self, partitions: Sequence[int]) -> list[int]:
        """Those on which a later lease lies."""
        later = []
        for partition, held in self._held(partitions, 0).items():
            found = StoredProgress.read_text(held.metadata)
            mine = self._lease if self._slot == 0 else self._lease.of_attempt
            if found is not None and found.lease is not None:
                theirs = found.lease if self._slot == 0 else found.lease.of_attempt
                later += [partition] if theirs > mine else []
        return later

    def position(self, lane: Lane) -> TopicPartition:
        """What is stored for a lane: its offset, and our lease on it."""
        metadata = lane.to_store(self._plan, self._lease).to_metadata()
        return TopicPartition(self._plan.topic, lane.partition, lane.handled, metadata)

    def _first(self, lane: Lane, held: TopicPartition) -> PartitionProgress:
        stored, found = _stored(held), StoredProgress.read_text(held.metadata)
        others: list[Span] = []
        if found is not None and found.run_key != self._plan.run_key and found.slots > 1:
            self._in_pieces[lane.partition] = found
            others = self._completed_in_pieces(lane.partition, found)
        return take_on(lane.range, self._plan, self._lease, stored, held.metadata, others)

    def _further(self, lane: Lane, held: TopicPartition, claim: TopicPartition) -> PartitionProgress:
        claimed = StoredProgress.read_text(claim.metadata)
        if claimed is None or claimed.lease is None or claimed.lease.of_attempt > self._lease.of_attempt:
            owner = claimed.run_key if claimed else "that nobody knows"
            return PartitionProgress.revoked(lane.range, owner)
        found = PartitionProgress.of(lane.range, self._plan.run_key, _stored(held), held.metadata)
        return found.with_done(claimed.done)

    def _completed_in_pieces(self, partition: int, found: StoredProgress) -> list[Span]:
        """What a run before has completed beyond its first piece. Its workers are fenced before it is read."""
        completed = []
        for slot in range(1, found.slots):
            if self._fences:
                writer = self._plan.transactional_id(partition, slot)
                settings = {**QUICK_START, "log_level": 3, **self._settings.destination}
                producer = Producer({**settings, "transactional.id": writer})
                producer.init_transactions(ANSWER_SECONDS)
            held = self._held([partition], slot)[partition]
            progress = StoredProgress.read_text(held.metadata)
            if progress is not None and progress.run_key == found.run_key:
                completed.append((progress.start, held.offset))
        return completed

    def _held(self, partitions: Sequence[int], slot: int) -> dict[int, TopicPartition]:
        """What the group of a slot holds."""
        asked = [TopicPartition(self._plan.topic, partition) for partition in partitions]
        consumer = self._source.consumer if slot == self._slot else self._visitor(slot)
        try:
            answers = consumer.committed(asked, timeout=ANSWER_SECONDS)
        finally:
            if slot != self._slot:
                consumer.close()
        for each in answers:
            if each.error is not None:
                raise KafkaException(each.error)
        return {each.partition: each for each in answers}

    def _visitor(self, slot: int) -> Consumer:
        group = progress_group_of(self._plan.group, slot)
        settings = {**QUICK_START, "log_level": 3, **self._settings.source}
        return Consumer({**settings, "group.id": group, "enable.auto.commit": False})


def _stored(held: TopicPartition) -> int | None:
    return held.offset if held.offset >= 0 else None
