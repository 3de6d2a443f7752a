"""The one consumer of a worker: it reads records, and the offsets of its group beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import ClusterMetadata

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from kpipe_engine.bounded_calls import BoundedCalls
from kpipe_engine.client_settings import ANSWER_SECONDS, Settings, consumer_settings
from kpipe_engine.reading.held_offsets import held_offsets
from kpipe_engine.reading.lone_fetch import fetch_alone


class SharedConsumer:
    """Owner of the consumer, whose group holds the progress of a slot. The consumer never joins that group."""

    def __init__(self, settings: Settings, plan: Plan, slot: int) -> None:
        self._settings = consumer_settings(settings, plan, slot)
        self._group = plan.progress_group(slot)
        self._open()

    def renew(self) -> None:
        """Start over with a new consumer. After a broker's standstill, the old one may never find its group again."""
        self.close()
        self._open()

    def _open(self) -> None:
        self._consumer = Consumer(self._settings)
        self._calls = BoundedCalls(self._consumer.close)

    def assign(self, *places: TopicPartition) -> None:
        """Fetch from these places from now on, and from nowhere else."""
        self._consumer.assign(list(places))

    def consume(self, most: int, seconds: float) -> list[Message]:
        return self._consumer.consume(most, seconds)

    def fetch_alone(self, start: TopicPartition, most: int) -> list[Message]:
        """Fetch with a client that reads nothing ahead; this one has to be assigned no place."""
        return fetch_alone(self._settings, start, most)

    def pause(self, place: TopicPartition) -> None:
        self._consumer.pause([place])

    def resume(self, place: TopicPartition) -> None:
        self._consumer.resume([place])

    def position(self, place: TopicPartition) -> int:
        """Return the offset after the last record that the client has returned, or passed over."""
        return self._consumer.position([place])[0].offset

    def learn_leaders(self, topic: str) -> ClusterMetadata:
        """Have the client learn the leaders of a topic's partitions.

        Otherwise the client often waits for its own request, which it sends once a second.
        """
        metadata: ClusterMetadata = self._consumer.list_topics(topic, timeout=ANSWER_SECONDS)
        return metadata

    def extent(self, place: TopicPartition) -> tuple[int, int]:
        """Return the first offset of the log, and the one after its last."""
        first, after_last = self._consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS)
        return first, after_last

    def extents(self, topic: str) -> Iterator[PartitionRange]:
        """Yield a range for the whole log of each partition."""
        for partition in self.learn_leaders(topic).topics[topic].partitions:
            yield PartitionRange(partition, *self.extent(TopicPartition(topic, partition)), None)

    def held(self, asked: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the offsets that the group holds."""
        return held_offsets(self._consumer, self._group, asked, ANSWER_SECONDS)

    def group_metadata(self) -> object:
        """Return the group's metadata in the form that a transaction needs."""
        return self._consumer.consumer_group_metadata()

    def commit(self, positions: list[TopicPartition], seconds: float) -> list[TopicPartition]:
        """Commit offsets to the group, and return the result for each."""
        consumer = self._consumer

        def commit() -> list[TopicPartition]:
            return consumer.commit(offsets=positions, asynchronous=False)

        return self._calls.within(seconds, "the chunk was stored", commit)

    def close(self) -> None:
        self._calls.close()
