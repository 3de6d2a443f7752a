"""The client's Producer, with its transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from tests.simulation.fates import Fate
from tests.simulation.kafka.cluster import refusal
from tests.simulation.kafka.consumer import held_of
from tests.simulation.kafka.groups import Group, Held, Place
from tests.simulation.kafka.log import Log
from tests.simulation.kafka.queueing import Queued, QueueingProducer
from tests.simulation.kafka.transactions import Transaction

# How long it takes until what was lost has been tried again. Some calls notice it by a connection that is gone.
AGAIN_SECONDS = (0.01, 1.0, 10.0, 40.0)
LOOK_SECONDS = 5.0
NEVER_SENT = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)


class Producer(QueueingProducer):
    """librdkafka asks again where a call has no limit of its own: what is lost there costs time only, unless it
    arrives late."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._id: str | None = settings.get("transactional.id")
        self._timeout = int(settings.get("transaction.timeout.ms", 60_000)) / 1000
        self._epoch = -1
        self._in_transaction = False
        self._registered: set[int] = set()
        self._is_begun = False
        """Whether the coordinator has heard of the transaction."""
        self._has_failed = False
        """Whether a record of it was never sent: only its commit says so."""

    # Calls

    def init_transactions(self, timeout: float = -1) -> None:
        transaction = self.transaction = self.cluster.transactions.get(self._id or "")
        fate = self._until_it_arrives("init", lambda: self._late_init(transaction))
        until = self.simulation.now + timeout if timeout >= 0 else float("inf")
        while True:
            if transaction.state == "ongoing":
                self.cluster.transactions.fence(transaction)
            if transaction.state == "empty":
                break
            left = until - self.simulation.now
            if not self.simulation.wait(lambda: not transaction.is_ending, min(LOOK_SECONDS, left)) and left <= 0:
                raise refusal(KafkaError._TIMED_OUT, retriable=True)
        transaction.epoch += 1
        transaction.timeout = self._timeout
        self._epoch = transaction.epoch
        self.simulation.note("init", self._id, "epoch", self._epoch)
        self._until_it_is_answered(fate, "init")

    def begin_transaction(self, timeout: float = -1) -> None:
        self.simulation.check()
        if self.fatal is not None:
            raise refusal(self.fatal, fatal=True)
        if self._in_transaction and self.abortable is not None:
            raise refusal(self.abortable, txn_requires_abort=True)
        if self._in_transaction or self._epoch < 0:
            raise refusal(KafkaError._STATE)
        self._in_transaction, self.abortable, self._is_begun, self._has_failed = True, None, False, False
        self._registered.clear()

    def send_offsets_to_transaction(
        self, positions: Sequence[TopicPartition], group_metadata: bytes, timeout: float = -1
    ) -> None:
        group = self.cluster.group(group_metadata.decode())
        offsets = {(each.topic, each.partition): held_of(each) for each in positions}
        self._check_usable()
        transaction, epoch = self._own, self._epoch
        fate = self._until_it_arrives(
            "send_offsets",
            lambda: self._late_offsets(transaction, epoch, group, offsets),
            *((partition, held.offset) for (_, partition), held in offsets.items()),
        )
        self._join_when_possible()
        if group not in transaction.parts:
            transaction.parts.append(group)
        # The group's coordinator is asked next, and by then somebody else may have come.
        self.simulation.enter("send_offsets, to the group", self._id)
        # It asks the coordinator of transactions whether this one is still at it (KIP-890).
        if not transaction.is_of(epoch) or not group.take(transaction.producer, epoch, offsets):
            self._end_for_good()
        self._check_metadata(offsets)
        self._until_it_is_answered(fate, "send_offsets")

    def commit_transaction(self, timeout: float = -1) -> None:
        self._check_usable()
        while self._queue and self.fatal is None and self.abortable is None:
            if not self.send():
                self.simulation.wait(self._may_send, 1.0)
        self._check_usable()
        if self._has_failed:
            self.abortable = KafkaError._INCONSISTENT
            self._check_usable()
        # Of an empty transaction the broker never hears.
        if self._is_begun:
            self._end("commit", commit=True)
        self._in_transaction = False

    def abort_transaction(self, timeout: float = -1) -> None:
        self.simulation.check()
        if self.fatal is not None:
            raise refusal(self.fatal, fatal=True)
        if not self._in_transaction:
            raise refusal(KafkaError._STATE)
        self.purge()
        if self._is_begun:
            fate = self.simulation.enter("abort", self._id, self._epoch)
            if fate == "lost":
                self._disconnected()
                transaction, epoch = self._own, self._epoch
                if self.simulation.befalls("late", "abort", self._id):
                    late = partial(self._late_end, transaction, epoch, commit=False)
                    self.cluster.transactions.comes_late(transaction, late)
                self.simulation.sleep(max(timeout, 1.0))
                raise refusal(KafkaError._TIMED_OUT, retriable=True)
            self._apply_end(commit=False)
            self.simulation.leave("abort", self._id)
        self._in_transaction, self.abortable = False, None

    def close(self, timeout: float = -1) -> None:
        super().close()
        # The client aborts what is open.
        if self._in_transaction and self._is_begun and self.fatal is None:
            self.simulation.enter("close", self._id, self._epoch)
            if self._own.is_of(self._epoch):
                self.cluster.transactions.end(self._own, commit=False)
        self._in_transaction = False

    # What the client does by itself

    def _may_send(self) -> bool:
        return self.transaction is None or not self.transaction.is_ending

    def _may_write(self, log: Log) -> bool:
        if self.transaction is None or id(log) in self._registered:
            return True
        if not self._join():
            return False
        self._registered.add(id(log))
        if log not in self._own.parts:
            self._own.parts.append(log)
        return True

    def _write(self, log: Log, batch: Sequence[Queued]) -> None:
        if self.transaction is None:
            super()._write(log, batch)
        elif log.append((each.row for each in batch), self._own.producer, self._epoch) is not None:
            self.fatal = KafkaError._FENCED
            self._refuse(batch, self.fatal)
        else:
            self._report_all(batch)

    def _refuse(self, batch: Sequence[Queued], code: int) -> None:
        super()._refuse(batch, code)
        if self.transaction is None:
            return
        if code in NEVER_SENT:
            self._has_failed = True
        else:
            self.abortable = code

    def _refuse_if_closed(self) -> None:
        super()._refuse_if_closed()
        if self._id is not None and (not self._in_transaction or self.abortable is not None):
            raise refusal(KafkaError._STATE)

    # With the coordinator

    @property
    def _own(self) -> Transaction:
        if self.transaction is None:
            raise refusal(KafkaError._STATE)
        return self.transaction

    def _join(self) -> bool:
        """AddPartitionsToTxn and AddOffsetsToTxn. False where the coordinator is busy with the one before, or has
        another producer by now."""
        transaction = self._own
        if transaction.epoch != self._epoch:
            self.fatal = KafkaError._FENCED
            return False
        if transaction.is_ending:
            return False
        self.cluster.transactions.touch(transaction)
        self._is_begun = True
        return True

    def _join_when_possible(self) -> None:
        while not self._join():
            if self.fatal is not None:
                self._end_for_good()
            self.simulation.wait(self._may_send, LOOK_SECONDS)

    def _end(self, what: str, commit: bool) -> None:
        transaction, epoch = self._own, self._epoch
        fate = self._until_it_arrives(what, lambda: self._late_end(transaction, epoch, commit), epoch)
        self._apply_end(commit)
        self._until_it_is_answered(fate, what)

    def _apply_end(self, commit: bool) -> None:
        if self._own.epoch != self._epoch:
            self._end_for_good()
        if self._own.state == "ongoing":
            self.simulation.note("ended", self._id, self._epoch, "commit" if commit else "abort")
            self.cluster.transactions.end(self._own, commit)

    def _check_usable(self) -> None:
        self.simulation.check()
        if self.fatal is not None:
            raise refusal(self.fatal, fatal=True)
        if not self._in_transaction:
            raise refusal(KafkaError._STATE)
        if self.abortable is not None:
            raise refusal(self.abortable, txn_requires_abort=True)

    def _check_metadata(self, offsets: Mapping[Place, Held]) -> None:
        most = int(self.cluster.broker_settings["offset.metadata.max.bytes"])
        if any(len((each.metadata or "").encode()) > most for each in offsets.values()):
            self.abortable = KafkaError.OFFSET_METADATA_TOO_LARGE
            raise refusal(self.abortable, txn_requires_abort=True)

    def _end_for_good(self) -> None:
        self.simulation.note("fenced", self._id, self._epoch)
        self.fatal = KafkaError._FENCED
        self._drop_all()
        raise refusal(KafkaError._FENCED, fatal=True)

    # Requests that are lost, or late

    def _until_it_arrives(self, what: str, late: Callable[[], None], *about: Any) -> Fate | None:
        fate = self.simulation.enter(what, self._id, *about)
        if fate == "lost":
            self._disconnected()
            self.simulation.sleep(self.simulation.chance.choice(AGAIN_SECONDS))
            if self.simulation.befalls("late", what, self._id):
                self.cluster.transactions.comes_late(self._own, late)
        return fate

    def _until_it_is_answered(self, fate: Fate | None, what: str) -> None:
        self.simulation.leave(what, self._id)
        if fate == "reply lost":
            self._disconnected()
            self.simulation.sleep(self.simulation.chance.choice(AGAIN_SECONDS))

    def _late_init(self, transaction: Transaction) -> None:
        """It came without an epoch: it fences whoever is there."""
        self.simulation.note("late", "init", transaction.name, "finds", transaction.epoch, transaction.state)
        if transaction.is_ending:
            return
        if transaction.state == "ongoing":
            self.cluster.transactions.fence(transaction)
        transaction.epoch += 1

    def _late_end(self, transaction: Transaction, epoch: int, commit: bool) -> None:
        self.simulation.note("late", "end", transaction.name, epoch, "finds", transaction.epoch, transaction.state)
        if transaction.is_of(epoch):
            self.cluster.transactions.end(transaction, commit)

    def _late_offsets(self, transaction: Transaction, epoch: int, group: Group, offsets: dict[Place, Held]) -> None:
        self.simulation.note("late", "offsets", transaction.name, epoch, "finds", transaction.epoch, transaction.state)
        if transaction.is_of(epoch) and group in transaction.parts:
            group.take(transaction.producer, epoch, offsets)
