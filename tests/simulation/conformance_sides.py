"""Both sides of the comparison: a real broker, and the model."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import confluent_kafka
import confluent_kafka.admin
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.simulation.conformance_calls import LARGEST, Names, Side
from tests.simulation.kafka.admin import AdminClient
from tests.simulation.kafka.cluster import Cluster, refusal
from tests.simulation.kafka.consumer import Consumer
from tests.simulation.kafka.producer import Producer
from tests.simulation.scheduler import Simulation

# A moment until the client's own thread, and the broker, have done what was begun.
MOMENT_SECONDS = 0.03
MOMENTS = {
    **dict.fromkeys(("produce", "produce_keyed", "new", "commit", "abort", "end"), MOMENT_SECONDS),
    # The client learns first which partitions there are.
    "produce_nowhere": 0.5,
    # It looks once a second for what has waited for longer than it takes until a topic is known everywhere.
    "produce_elsewhere": 2.5,
}


class Real(Side):
    """A real broker."""

    consumer_kind = confluent_kafka.Consumer
    producer_kind = confluent_kafka.Producer
    admin_kind = confluent_kafka.admin.AdminClient

    def settle(self, what: str) -> None:
        time.sleep(MOMENTS.get(what, 0.0))

    def delete(self, partition: int, before: int) -> Any:
        (answer,) = self._admin.delete_records([TopicPartition(self._names.topic, partition, before)]).values()
        with contextlib.suppress(KafkaException):
            answer.result()

    def grow(self) -> Any:
        (answer,) = self._admin.create_partitions([NewPartitions(self._names.topic, 3)]).values()
        answer.result()
        self._wait_for(3)

    def recreate(self) -> Any:
        topic = self._names.topic
        self._admin.delete_topics([topic])[topic].result()
        made = NewTopic(topic, 2, 1, config={"max.message.bytes": str(LARGEST)})
        for _ in range(50):
            time.sleep(MOMENT_SECONDS)
            with contextlib.suppress(KafkaException):
                self._admin.create_topics([made])[topic].result()
                break
        self._wait_for(2)

    def _wait_for(self, partitions: int) -> None:
        asked = {TopicPartition(self._names.topic, partition): OffsetSpec.latest() for partition in range(partitions)}
        for _ in range(50):
            time.sleep(MOMENT_SECONDS)
            with contextlib.suppress(KafkaException):
                for each in self._admin.list_offsets(asked).values():
                    each.result()
                return


class Model(Side):
    """The model, in which what a client's own thread does is done after each call."""

    consumer_kind = Consumer
    producer_kind = Producer
    admin_kind = AdminClient

    def __init__(self, names: Names, simulation: Simulation) -> None:
        self._cluster = Cluster(simulation)
        super().__init__("model", names)
        self._cluster.create(names.topic, 2, max_message_bytes=str(LARGEST))

    def settle(self, what: str) -> None:
        self._cluster.settle()
        for each in self._producers.values():
            each.send()

    def delete(self, partition: int, before: int) -> Any:
        if before <= self._cluster.log(self._names.topic, partition).end:
            self._cluster.delete_records(self._names.topic, partition, before)

    def grow(self) -> Any:
        if len(self._cluster.topic(self._names.topic).logs) == 3:
            raise refusal(KafkaError.INVALID_PARTITIONS)
        self._cluster.grow(self._names.topic, 3)

    def recreate(self) -> Any:
        self._cluster.recreate(self._names.topic, 2)
