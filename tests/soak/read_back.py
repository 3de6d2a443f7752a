"""Reads what is in Kafka after the soak, as any reader of committed records would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.soak.accounts import Found, Letter
from tests.soak.records import id_in

READ_SECONDS = 10.0
ATTEMPT = "kpipe-dead-letter-attempt"
OWN_HEADERS = "kpipe-"


class Reader:
    """Everything that one broker tells."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._settings: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap_servers, "log_level": 3}
        self._admin = AdminClient(dict(self._settings))

    def groups(self) -> set[str]:
        return {each.group_id for each in self._admin.list_consumer_groups().result().valid}

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=READ_SECONDS).topics)

    def lag(self, group: str, topic: str) -> int:
        """How many offsets the group has not committed."""
        consumer = self._consumer(group)
        try:
            partitions = self._partitions(topic)
            committed = consumer.committed(partitions, timeout=READ_SECONDS)
            ends = [consumer.get_watermark_offsets(each, timeout=READ_SECONDS)[1] for each in partitions]
            return sum(end - max(0, each.offset) for each, end in zip(committed, ends, strict=True))
        finally:
            consumer.close()

    def found(self, source: str, out: str, dead: str, parked: str) -> Found:
        fresh: list[int] = []
        returned: list[int] = []
        for value, headers in self._records(source):
            is_returned = any(name.startswith(OWN_HEADERS) for name in headers)
            (returned if is_returned else fresh).append(id_in(value))
        return Found(
            fresh=tuple(fresh),
            returned=tuple(returned),
            written=tuple(id_in(value) for value, _ in self._records(out)),
            dead=tuple(_letter(*each) for each in self._records(dead)),
            parked=tuple(_letter(*each) for each in self._records(parked)),
        )

    def _records(self, topic: str) -> Iterator[tuple[bytes | None, dict[str, bytes]]]:
        """The committed ones, partition by partition, up to the end as it is now."""
        consumer = self._consumer("soak-reads-back")
        try:
            for each in self._partitions(topic):
                first, end = consumer.get_watermark_offsets(each, timeout=READ_SECONDS)
                consumer.assign([TopicPartition(topic, each.partition, first)])
                while first < end:
                    message = consumer.poll(READ_SECONDS)
                    if message is None:
                        raise KafkaException(f"{topic}-{each.partition} gives nothing from {first} of {end}")
                    error = message.error()
                    if error is None:
                        headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
                        yield message.value(), {name: value or b"" for name, value in headers}
                        first = (message.offset() or 0) + 1
                    elif error.code() == KafkaError._PARTITION_EOF:
                        # Markers of transactions come as no message: only the end of the partition tells of them.
                        break
                    else:
                        raise KafkaException(error)
        finally:
            consumer.close()

    def _partitions(self, topic: str) -> list[TopicPartition]:
        known = self._admin.list_topics(topic, timeout=READ_SECONDS).topics[topic]
        return [TopicPartition(topic, number) for number in sorted(known.partitions)]

    def _consumer(self, group: str) -> Consumer:
        return Consumer(
            {
                **self._settings,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
            }
        )


def _letter(value: bytes | None, headers: dict[str, bytes]) -> Letter:
    return Letter(id_in(value), int(headers[ATTEMPT]))
