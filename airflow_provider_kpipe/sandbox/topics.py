"""Topics, created and awaited until they can be used."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition


def create_topics(
    bootstrap_servers: str,
    *names: str,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
    timeout: float = 30.0,
) -> None:
    """Create topics with one replica, and return when the leader of every partition answers."""
    from confluent_kafka import Consumer, TopicPartition
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    deadline = time.monotonic() + timeout
    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
    topics = [NewTopic(name, partitions, replication_factor=1, config=dict(config or {})) for name in names]
    admin = AdminClient(settings)  # kept in a variable: its answers fail if it is deleted before they arrive
    for created in admin.create_topics(topics, request_timeout=timeout).values():
        created.result()

    consumer = Consumer({**settings, "group.id": "kpipe-sandbox"})
    try:
        for name in names:
            for number in range(partitions):
                _wait_for_leader(consumer, TopicPartition(name, number), deadline)
    finally:
        consumer.close()


def _wait_for_leader(consumer: Consumer, partition: TopicPartition, deadline: float) -> None:
    """Ask for the partition's offsets until they arrive: the leader knows a new topic only after a moment."""
    from confluent_kafka import KafkaError, KafkaException

    not_yet = (
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    )
    while True:
        try:
            consumer.get_watermark_offsets(partition, timeout=max(0.1, deadline - time.monotonic()))
        except KafkaException as error:
            if error.args[0].code() not in not_yet or time.monotonic() >= deadline:
                raise
            time.sleep(0.02)
        else:
            return
