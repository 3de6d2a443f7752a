"""The calls that are compared, and what they say in words that can be."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import ConfigResource, OffsetSpec

LARGEST = 3_000
SECONDS = 10.0
LEVELS = (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)


@dataclass(frozen=True, slots=True)
class Names:
    """Those of a sequence's own."""

    topic: str
    group: str
    writer: str

    @property
    def missing(self) -> str:
        return f"{self.topic}.missing"


class Side:
    """Makes calls, and says what came of them in words that can be compared."""

    consumer_kind: Any
    producer_kind: Any
    admin_kind: Any

    def __init__(self, bootstrap: str, names: Names) -> None:
        self._base = {"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.ms": 10}
        self._names = names
        # Kept by a name: answers never come to one that is gone.
        self._admin = self.admin_kind(dict(self._base))
        self._producers: dict[int, Any] = {}
        self._refused: dict[int, list[str]] = {}

    def do(self, what: str, *args: Any) -> Any:
        try:
            answer = getattr(self, what)(*args)
        except KafkaException as error:
            answer = _said(error)
        except BufferError:
            answer = ("BufferError",)
        except SystemError as error:
            answer = _said(error.__cause__) if isinstance(error.__cause__, KafkaException) else ("SystemError",)
        self.settle(what)
        return answer

    def settle(self, what: str) -> None:
        """Have done what was begun."""

    def close(self) -> None:
        for each in self._producers.values():
            with contextlib.suppress(KafkaException):
                each.close()

    # Producers

    def new(self, number: int, writer: str) -> Any:
        refused = self._refused[number] = []
        producer = self._producers[number] = self.producer_kind(
            {
                **self._base,
                "transactional.id": self._names.writer + writer,
                "transaction.timeout.ms": 60_000,
                "topic.metadata.propagation.max.ms": 300,
                "linger.ms": 0,
                "partitioner": "murmur2_random",
                "on_delivery": lambda error, _message: refused.append(error.name() if error else "none"),
                "delivery.report.only.error": True,
                "enable.idempotence": True,
                "error_cb": lambda _error: None,
            }
        )
        producer.init_transactions(20)

    def begin(self, number: int) -> Any:
        self._producers[number].begin_transaction()

    def produce(self, number: int, partition: int, value: bytes, timestamp: int) -> Any:
        headers = [("at", b"%d" % timestamp)]
        # By position, as the engine does.
        self._producers[number].produce(self._names.topic, value, None, partition, None, None, timestamp, headers)

    def produce_keyed(self, number: int, key: bytes, value: bytes) -> Any:
        self._producers[number].produce(self._names.topic, value, key, timestamp=1)

    def produce_nowhere(self, number: int) -> Any:
        self._producers[number].produce(self._names.topic, b"nowhere", None, 7)

    def produce_elsewhere(self, number: int) -> Any:
        self._producers[number].produce(self._names.missing, b"value", partition=0)

    def flush(self, number: int) -> Any:
        try:
            left = self._producers[number].flush(3)
        finally:
            refused = sorted(set(self._refused[number]))
            self._refused[number].clear()
        return ("left", left, refused)

    def offsets(self, number: int, partition: int, offset: int, metadata: str) -> Any:
        consumer = self._consumer(self._names.group)
        place = TopicPartition(self._names.topic, partition, offset, metadata, leader_epoch=0)
        try:
            known = consumer.consumer_group_metadata()
        finally:
            consumer.close()
        self._producers[number].send_offsets_to_transaction([place], known, SECONDS)

    def commit(self, number: int) -> Any:
        self._producers[number].commit_transaction(SECONDS)

    def abort(self, number: int) -> Any:
        self._producers[number].abort_transaction(SECONDS)

    def end(self, number: int) -> Any:
        with contextlib.suppress(KafkaException):
            self._producers.pop(number).close()

    # Groups

    def held(self, level: str = "read_committed") -> Any:
        consumer = self._consumer(self._names.group, level)
        try:
            asked = [TopicPartition(self._names.topic, partition) for partition in (0, 1)]
            return [
                (each.partition, each.offset, each.metadata, each.leader_epoch)
                for each in consumer.committed(asked, timeout=1.5)
            ]
        finally:
            consumer.close()

    def held_now(self) -> Any:
        """Without waiting for a transaction that is pending."""
        return self.held("read_uncommitted")

    def so_far(self) -> Any:
        """Each partition, stable or not."""
        asked = [TopicPartition(self._names.topic, partition) for partition in (0, 1)]
        answers = []
        for stable in (False, True):
            group = ConsumerGroupTopicPartitions(self._names.group, asked)
            found = self._admin.list_consumer_group_offsets([group], require_stable=stable, request_timeout=SECONDS)
            answers += [
                (each.partition, each.offset, each.metadata or "", each.error and each.error.name())
                for each in found[self._names.group].result().topic_partitions
            ]
        return answers

    def outside(self, partition: int, offset: int) -> Any:
        return self._outside(partition, offset, "by hand")

    def outside_large(self, partition: int, offset: int) -> Any:
        return self._outside(partition, offset, "m" * 5_000)

    def outside_nowhere(self, _partition: int, offset: int) -> Any:
        return self._outside(7, offset, "by hand")

    def _outside(self, partition: int, offset: int, metadata: str) -> Any:
        consumer = self._consumer(self._names.group)
        try:
            asked = [TopicPartition(self._names.topic, partition, offset, metadata)]
            answers = consumer.commit(offsets=asked, asynchronous=False)
            return [(each.partition, each.offset, each.metadata, each.error and each.error.name()) for each in answers]
        finally:
            consumer.close()

    # Logs

    def ends(self) -> Any:
        answers = []
        for level in LEVELS:
            for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):
                answers += self._listed(spec, level)
        return answers

    def moment(self, timestamp: int) -> Any:
        return [each for level in LEVELS for each in self._listed(OffsetSpec.for_timestamp(timestamp), level)]

    def _listed(self, spec: Any, level: IsolationLevel) -> list[tuple[int, int | None]]:
        asked = {TopicPartition(self._names.topic, partition): spec for partition in (0, 1)}
        found = self._admin.list_offsets(asked, isolation_level=level, request_timeout=SECONDS)
        return [(each.result().offset, each.result().leader_epoch) for each in found.values()]

    def watermarks(self, partition: int) -> Any:
        consumer = self._consumer("x")
        try:
            return consumer.get_watermark_offsets(TopicPartition(self._names.topic, partition), timeout=SECONDS)
        finally:
            consumer.close()

    def described(self) -> Any:
        answers: list[Any] = []
        for name in (self._names.topic, self._names.missing):
            try:
                (found,) = self._admin.describe_topics(TopicCollection([name]), request_timeout=SECONDS).values()
                answers.append([each.id for each in found.result().partitions])
            except KafkaException as error:
                answers.append(_said(error))
        for name in (self._names.group, f"{self._names.group}.missing"):
            try:
                (group,) = self._admin.describe_consumer_groups([name], request_timeout=SECONDS).values()
                answers.append(len(group.result().members))
            except KafkaException as error:
                answers.append(_said(error))
        resource = ConfigResource(ConfigResource.Type.TOPIC, self._names.topic)
        (settings,) = self._admin.describe_configs([resource], request_timeout=SECONDS).values()
        wanted = ("max.message.bytes", "cleanup.policy", "message.timestamp.type")
        return [*answers, [settings.result()[each].value for each in wanted]]

    def read(self, partition: int, first: int, level: str) -> Any:
        consumer = self._consumer("x", level)
        place = TopicPartition(self._names.topic, partition, first)
        try:
            consumer.list_topics(self._names.topic, timeout=SECONDS)
            consumer.assign([place])
            return self._read(consumer, place)
        finally:
            consumer.close()

    def _read(self, consumer: Any, place: TopicPartition) -> Any:
        found: list[Any] = []
        for _ in range(15):
            for each in consumer.consume(100, 0.1):
                if each.error() is not None:
                    # A position is moved by its own messages, which come after this one.
                    return [*found, (each.error().name(), each.offset())], consumer.position([place])[0].offset
                when = each.timestamp()[1] if each.timestamp()[1] < 1_000 else "now"
                found.append((each.offset(), each.key(), each.value(), each.headers(), when, each.leader_epoch()))
        return [*found, "no end"]

    # Operators

    def delete(self, partition: int, before: int) -> Any:
        raise NotImplementedError

    def grow(self) -> Any:
        raise NotImplementedError

    def recreate(self) -> Any:
        raise NotImplementedError

    def _consumer(self, group: str, level: str = "read_committed") -> Any:
        return self.consumer_kind(
            {
                **self._base,
                "group.id": group,
                "isolation.level": level,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 10,
            }
        )


def _said(error: KafkaException) -> tuple[str, str, str]:
    said = error.args[0]
    return (said.name(), "fatal" if said.fatal() else "", "abortable" if said.txn_requires_abort() else "")
