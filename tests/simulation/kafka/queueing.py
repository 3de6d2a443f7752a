"""The client's Producer: records are queued, and sent when the client is called, or gets round to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, Message

from tests.simulation.clock import EPOCH_SECONDS
from tests.simulation.kafka.client import Client
from tests.simulation.kafka.cluster import Topic, refusal
from tests.simulation.kafka.log import Log, Row
from tests.simulation.kafka.partitioning import choose_partition
from tests.simulation.kafka.transactions import Transaction

Report = Callable[[KafkaError | None, Message], object]

SENDS_WHILE_QUEUED, SENDS_IN_POLL, SENDS_AS_IT_DIES = 0.1, 0.5, 0.5
ARRIVES_UNSEEN = 0.5
# What the client takes beside key and value of a record, for its own limit.
OVERHEAD = 36
FLUSH_FOREVER = 0.2
FOREVER_MS = 2**63 - 1


class Queued(NamedTuple):
    """A record that waits to be sent."""

    topic: str
    partition: int
    row: Row
    report: Report | None


class QueueingProducer(Client):
    """A producer as far as it has no transactions."""

    transaction: Transaction | None = None

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self._on_delivery: Report | None = settings.get("on_delivery")
        self._only_errors = settings.get("delivery.report.only.error", False)
        self._logger = settings.get("logger")
        self._said: list[str] = []
        self._queue: list[Queued] = []
        self._reports: list[tuple[Report, KafkaError | None, Message]] = []
        self._largest = int(settings.get("message.max.bytes", 1_000_000))
        self._room = int(settings.get("queue.buffering.max.messages", 100_000))
        self._per_batch = int(settings.get("batch.num.messages", 10_000))
        self._partitioner = settings.get("partitioner", "consistent_random")
        self._known: set[str] = set()
        """Topics of which the client knows the partitions."""
        self.is_closed = False
        self.fatal: int | None = None
        """The code of what ended this producer for good."""
        self.abortable: int | None = None
        """The code of what only an abort gets over."""

    def __len__(self) -> int:
        return len(self._queue) + len(self._reports)

    def died(self) -> None:
        """Have some of what is in flight arrive."""
        chance = self.simulation.chance
        if self._queue and not self.is_closed and chance.random() < SENDS_AS_IT_DIES:
            self.send(1 + int(chance.random() * len(self._queue)))

    # Records

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int = -1,
        callback: Report | None = None,
        on_delivery: Report | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        self.simulation.check()
        self._refuse_if_closed()
        value = value.encode() if isinstance(value, str) else value
        key = key.encode() if isinstance(key, str) else key
        chance = self.simulation.chance
        if len(value or b"") + len(key or b"") + OVERHEAD > self._largest:
            raise refusal(KafkaError.MSG_SIZE_TOO_LARGE)
        if len(self._queue) >= self._room:
            raise BufferError("Local: Queue full")
        found = self.cluster.topics.get(topic)
        if partition == -1:
            partition = choose_partition(self._partitioner, key, len(found.logs), chance) if found else 0
        elif topic in self._known and found is not None and partition >= len(found.logs):
            raise refusal(KafkaError._UNKNOWN_PARTITION)
        headers = list(headers.items() if isinstance(headers, dict) else headers) if headers else None
        row = Row(key, value, headers, timestamp or int((EPOCH_SECONDS + self.simulation.now) * 1000))
        self._queue.append(Queued(topic, partition, row, callback or on_delivery or self._on_delivery))
        if chance.random() < SENDS_WHILE_QUEUED:
            self.send(1 + int(chance.random() * len(self._queue)))

    def poll(self, timeout: float = 0) -> int:
        # Nobody sees it that the client is only listened to.
        self.simulation.check()
        if timeout and self._queue:
            self.simulation.enter("poll", timeout)
        if (
            self._queue
            and self.simulation.chance.random() < SENDS_IN_POLL
            and not self.send()
            and timeout
            and not self._reports
        ):
            self.simulation.wait(self._may_send, FLUSH_FOREVER if timeout < 0 else timeout)
        return self._serve()

    def flush(self, timeout: float = -1) -> int:
        self.simulation.check()
        if self._queue:
            self.simulation.enter("flush", len(self._queue))
        if not self.send() and timeout:
            self.simulation.wait(self._may_send, FLUSH_FOREVER if timeout < 0 else timeout)
            self.send()
        self._serve()
        if self.fatal is not None:
            raise refusal(self.fatal, fatal=True)
        return len(self)

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        self.simulation.check()
        queue, self._queue = self._queue, []
        for each in queue:
            self._report(each, KafkaError._PURGE_QUEUE)

    def close(self, timeout: float = -1) -> None:
        self.simulation.check()
        self.is_closed, self._queue = True, []

    def send(self, most: int | None = None) -> bool:
        """Do what the client's own thread does, which hands over to nobody; says whether all is sent."""
        if not self._queue or self.fatal is not None or self.abortable is not None:
            return not self._queue
        rows, rest = (self._queue, []) if most is None else (self._queue[:most], self._queue[most:])
        batches: dict[tuple[str, int], list[Queued]] = {}
        for each in rows:
            batches.setdefault((each.topic, each.partition), []).append(each)
        left: list[Queued] = []
        for place, batch in batches.items():
            if self.fatal is not None or self.abortable is not None or not self._send(place, batch):
                left += batch
        self._queue = left + rest
        if self.fatal is not None:
            self._drop_all()
        return not self._queue

    def _send(self, place: tuple[str, int], batch: Sequence[Queued]) -> bool:
        """False where it has to wait."""
        self._known.add(place[0])
        topic, log = self.cluster.topics.get(place[0]), self.cluster.find_log(*place)
        if topic is None or log is None:
            self._refuse(batch, KafkaError.UNKNOWN_TOPIC_OR_PART if topic is None else KafkaError._UNKNOWN_PARTITION)
            return True
        if not self._may_write(log):
            return self.fatal is not None
        for at in range(0, len(batch), self._per_batch):
            some = batch[at : at + self._per_batch]
            code = self._refusal_of(some, topic)
            if code is None or (code == KafkaError._MSG_TIMED_OUT and self._arrives_unseen()):
                self._write(log, some)
            if code is not None:
                self._refuse(some, code)
            if self.abortable is not None:
                # What follows in the transaction is never sent.
                self._queue_again(batch[at + self._per_batch :])
                return True
        return True

    def _queue_again(self, batch: Sequence[Queued]) -> None:
        for each in batch:
            self._report(each, KafkaError._PURGE_QUEUE)

    def _write(self, log: Log, batch: Sequence[Queued]) -> None:
        log.append(each.row for each in batch)
        self._report_all(batch)

    def _arrives_unseen(self) -> bool:
        """Whether what the client gives up was written all the same. In a transaction, nobody ever sees that."""
        return self.transaction is None and self.simulation.chance.random() < ARRIVES_UNSEEN

    def _refusal_of(self, batch: Sequence[Queued], topic: Topic) -> int | None:
        """Why the broker, or what lies between, does not take a batch."""
        if any(each.row.size + OVERHEAD > topic.largest for each in batch):
            return KafkaError.MSG_SIZE_TOO_LARGE
        if topic.is_compacted and any(each.row.key is None for each in batch):
            return KafkaError.INVALID_RECORD
        if topic.oldest_ms < FOREVER_MS:
            oldest = (EPOCH_SECONDS + self.simulation.now) * 1000 - topic.oldest_ms
            if any(each.row.timestamp < oldest for each in batch):
                return KafkaError.INVALID_TIMESTAMP
        if self.simulation.befalls("refused", topic.name, len(batch)):
            return KafkaError._MSG_TIMED_OUT
        return None

    def _refuse(self, batch: Sequence[Queued], code: int) -> None:
        for each in batch:
            self._report(each, code)

    def _report_all(self, batch: Sequence[Queued]) -> None:
        if not self._only_errors:
            for each in batch:
                self._report(each, None)

    def _report(self, queued: Queued, code: int | None) -> None:
        if queued.report is not None and (code is not None or not self._only_errors):
            message = Message(
                topic=queued.topic, partition=queued.partition, key=queued.row.key, value=queued.row.value
            )
            self._reports.append((queued.report, None if code is None else KafkaError(code), message))

    def _serve(self) -> int:
        """Give out what the client has to say, which it does only when it is called."""
        said, self._said = self._said, []
        for text in said:
            if self._logger is not None:
                self._logger.log(7, "", "FAIL", "", text)
        reports, self._reports = self._reports, []
        for report, error, message in reports:
            report(error, message)
        return len(reports)

    def _disconnected(self) -> None:
        self._said.append("[thrd:x]: model:9092/1: Disconnected (after 1ms in state UP)")

    def _drop_all(self) -> None:
        queue, self._queue = self._queue, []
        for each in queue:
            self._report(each, self.fatal)

    def _refuse_if_closed(self) -> None:
        if self.fatal is not None:
            raise refusal(KafkaError._FATAL)

    def _may_send(self) -> bool:
        return True

    def _may_write(self, log: Log) -> bool:
        return True
