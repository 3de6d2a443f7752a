"""Fill topics, and read them to their ends, as another program would."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.kafka.topic_limits import topic_settings
from kpipe_engine.reading.held_offsets import held_offsets
from tests.kit.jobs import wait_for


@dataclass(frozen=True)
class Sent:
    """A record to write."""

    value: bytes | None = b"value"
    key: bytes | None = None
    partition: int = 0
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    timestamp: int = 0


@dataclass(frozen=True)
class Seen:
    """A record as it was found."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: tuple[int, int]

    def header(self, name: str) -> str:
        (value,) = [found for key, found in self.headers if key == name]
        return (value or b"").decode()


def fill(bootstrap: str, topic: str, records: Iterable[Sent], **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, **settings})
    for record in records:
        while True:
            try:
                producer.produce(
                    topic,
                    record.value,
                    record.key,
                    record.partition,
                    headers=list(record.headers),
                    timestamp=record.timestamp,
                )
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(30) == 0


def numbered(count: int, partitions: int = 1, start: int = 0) -> list[Sent]:
    """Records whose key and value are their number, spread over the partitions in turn."""
    return [
        Sent(value=f'{{"id": {number}}}'.encode(), key=str(number).encode(), partition=number % partitions)
        for number in range(start, start + count)
    ]


def fill_in_transactions(bootstrap: str, topic: str, batches: Iterable[tuple[list[Sent], bool]]) -> None:
    """Each batch is a transaction, which is committed or aborted; both leave a marker that takes an offset."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"fill-{topic}"})
    producer.init_transactions()
    for records, commit in batches:
        producer.begin_transaction()
        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                record.partition,
                headers=list(record.headers),
                timestamp=record.timestamp,
            )
        producer.flush()
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()


def change_topic(bootstrap: str, topic: str, config: Mapping[str, str]) -> None:
    """Change settings of a topic, as an operator with a command line would."""
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap}
    changed = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()]
    admin = AdminClient(settings)
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=changed)
    for answer in admin.incremental_alter_configs([asked]).values():
        answer.result(30)
    # The controller answers, and the broker hears of it a moment later.
    wait_for(lambda: config.items() <= topic_settings(settings, [topic])[topic].items(), "the broker to know it")


def read_all(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Seen]:
    """Every record that a reader sees now, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "tests-never-commit",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": isolation,
            "fetch.wait.max.ms": 20,
        }
    )
    try:
        partitions = list(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        low = {each: consumer.get_watermark_offsets(TopicPartition(topic, each), timeout=30)[0] for each in partitions}
        consumer.assign([TopicPartition(topic, each, low[each]) for each in partitions])
        seen: list[Seen] = []
        waiting = set(partitions)
        message: Any
        while waiting:
            for message in consumer.consume(5_000, 0.05):
                error = message.error()
                if error is None:
                    seen.append(
                        Seen(
                            message.partition(),
                            message.offset(),
                            message.key(),
                            message.value(),
                            message.headers() or [],
                            message.timestamp(),
                        )
                    )
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    waiting.discard(message.partition())
    finally:
        consumer.close()
    return sorted(seen, key=lambda record: (record.partition, record.offset))


def are_held_back(bootstrap: str, topic: str) -> bool:
    """Whether readers of committed records see less than what is there: a transaction is open."""
    with Positions({"bootstrap.servers": bootstrap}) as positions:
        found = positions.topic(topic)
        return positions.latest(found, "read_committed") != positions.latest(found, "read_uncommitted")


def committed(bootstrap: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    """The offsets that a group holds, without those that it does not hold."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        answers = held_offsets(consumer, group, [TopicPartition(topic, each) for each in range(partitions)], 30)
        return {answer.partition: answer.offset for answer in answers if answer.offset >= 0}
    finally:
        consumer.close()


def commits(bootstrap: str, group: str, topic: str, partition: int) -> list[bytes]:
    """What the broker has kept of each commit of a partition, in order: it keeps the last one, for a week from then."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in (group, topic))
    # The version of the key comes first: 1 is an offset.
    key = struct.pack(">h", 1) + names + struct.pack(">i", partition)
    return [record.value or b"" for record in read_all(bootstrap, "__consumer_offsets") if record.key == key]


def commit(bootstrap: str, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Move a group from outside, as an operator with a command line would."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        positions = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        for answer in consumer.commit(offsets=positions, asynchronous=False) or []:
            assert answer.error is None, answer.error
    finally:
        consumer.close()


def held(bootstrap: str, group: str, topic: str, partition: int = 0) -> TopicPartition:
    """What a group holds for a partition: an offset, and the metadata beside it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        (found,) = held_offsets(consumer, group, [TopicPartition(topic, partition)], 30)
        return found
    finally:
        consumer.close()


def hold(bootstrap: str, group: str, position: TopicPartition) -> None:
    """Have a group hold just that."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        (answer,) = consumer.commit(offsets=[position], asynchronous=False) or []
        assert answer.error is None, answer.error
    finally:
        consumer.close()
