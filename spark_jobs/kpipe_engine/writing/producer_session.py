"""Hand-over of records to the producer, and the broker's answers to them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from airflow_provider_kpipe.contract.client_log import ClientLog
from airflow_provider_kpipe.contract.faults.fault import Fault, FaultKind
from kpipe_engine.bounded_calls import BoundedCalls
from kpipe_engine.client_settings import ANSWER_SECONDS, Settings
from kpipe_engine.errors import (
    ChunkDroppedError,
    ChunkFailedError,
    ChunkRejectedError,
    UnwritableRecordError,
    is_record_error,
    may_be_fenced,
    stop_if_unwritable,
)
from kpipe_engine.writing.backpressure import Admission

ABORT_SECONDS = 10.0
FLUSH_SECONDS = 0.2
# How long to serve acknowledgements while the producer's queue is full, before trying again.
FULL_QUEUE_SECONDS = 0.1
PARTITIONER_CHOOSES = -1
NOW = 0


class Rejection(NamedTuple):
    """The broker's rejection of a record, with the offset of the record if that is known."""

    error: KafkaError
    topic: str | None
    source_offset: int | None
    kind: FaultKind


class ProducerSession:
    """Owner of the producer of a worker, which knows the rejections of its records by the broker.

    A broker rejects whole batches. To trace the record behind a rejection costs time for each record, so the session
    isolates records only when a chunk is redone: it sends every record alone then, and traces it.
    """

    def __init__(self, settings: Settings, own_topic: str, admission: Admission) -> None:
        self._settings, self._own_topic, self._admission = settings, own_topic, admission
        self.generation = 0
        """Number of the producer: a new one has fenced the last."""
        self._open(isolates=False)

    def renew(self, *, isolates: bool) -> None:
        """Drop unsent records, and start over with a new producer, which isolates records or not."""
        self.close()
        self.generation += 1
        self._open(isolates)

    def _open(self, isolates: bool) -> None:
        self._isolates = isolates
        # Each producer has its own list: one that is abandoned in a late call may still answer.
        self._rejections: list[Rejection] = []
        self._log = ClientLog()
        self._producer = Producer(
            {
                **self._settings,
                **({"batch.num.messages": 1} if isolates else {}),
                "on_delivery": partial(_note, self._rejections, None, "destination"),
                "throttle_cb": lambda event: self._admission.output_is_throttled(event.throttle_time),
                "logger": self._log,
            }
        )
        self._calls = BoundedCalls(partial(self._drop, self._producer))
        self.produce_fast: Callable[..., None] = _take_nothing if isolates else self._producer.produce
        """The quickest way, without a trace of a message's record. A BufferError means: not now, or not this way."""

    @property
    def has_rejections(self) -> bool:
        """Tell whether the broker has rejected a record since the last `wait`."""
        return bool(self._rejections)

    @property
    def lost_connection(self) -> bool:
        """Tell whether a connection of the producer was closed since `forget_connections`.

        A request that went over that connection may still arrive.
        """
        # The client's log lines wait to be served; it logs a closed connection before it retries a request.
        self.poll()
        return self._log.lost_connection

    def forget_connections(self) -> None:
        """Forget the closed connections: requests that have gone over them so far cannot do harm."""
        self.poll()
        self._log.lost_connection = False

    def produce(
        self,
        source_offset: int,
        kind: FaultKind,
        topic: str,
        value: Any,
        key: Any = None,
        partition: int = PARTITIONER_CHOOSES,
        timestamp: int = NOW,
        headers: Any = None,
    ) -> None:
        """Queue one message. Wait while the queue is full: a record dropped here would be lost without a trace.

        The caller has to check the names of headers, unless they were read from a message.

        :param source_offset: the offset of the record that the message comes of
        :param kind: the kind of the fault if the broker rejects the message
        """
        traced = partial(_note, self._rejections, source_offset, kind) if self._isolates else None
        was_empty = False
        while True:
            try:
                self._producer.produce(topic, value, key, partition, traced, None, timestamp, headers)
                return
            except BufferError as full:
                if was_empty:
                    # The wait for room would never end.
                    raise UnwritableRecordError from BufferError(
                        f"the record is larger than the whole queue of the producer ({full}): raise "
                        "queue.buffering.max.kbytes in the extra of the destination's connection"
                    )
                was_empty = self._wait_for_room()
            except KafkaException as error:
                if not is_record_error(error.args[0]):
                    self._raise_rejection()
                    raise
                raise UnwritableRecordError from error
            except (TypeError, ValueError, OverflowError) as error:
                raise UnwritableRecordError from error

    def wait(self) -> None:
        """Wait until the broker has acknowledged every record of the chunk, or raise if it has rejected one."""
        # The client never sends the records behind a rejected one in its transaction: a wait for them would take a
        # minute.
        while (left := self._call(partial(self._producer.flush, FLUSH_SECONDS))) and not self._rejections:
            self._admission.output_waits(left)
        self._admission.output_flows()
        rejections = self._rejections.copy()
        self._rejections.clear()
        if not rejections:
            return
        for each in rejections:
            if may_be_fenced(each.error):
                raise KafkaException(each.error)
            stop_if_unwritable(each.topic, self._own_topic, each.error)
        faults = {
            each.source_offset: Fault.of(KafkaException(each.error), "kafka", each.kind)
            for each in rejections
            if each.source_offset is not None and is_record_error(each.error)
        }
        if all(each.error.code() == KafkaError._PURGE_QUEUE for each in rejections):
            raise ChunkDroppedError(f"{len(rejections)} records were dropped before they were sent")
        raise ChunkFailedError(
            f"the broker rejected {len(rejections)} records, the first with: {rejections[0].error}", faults
        )

    def poll(self) -> None:
        """Process the broker's answers that have arrived so far."""
        self._call(partial(self._producer.poll, 0))

    def _raise_rejection(self) -> None:
        """Raise ChunkRejectedError if the producer takes nothing more because the broker has rejected a record.

        In a transaction, that concerns the records behind the rejected one. `wait` raises the reason.
        """
        self._call(partial(self._producer.poll, FLUSH_SECONDS))
        if self._rejections:
            raise ChunkRejectedError

    def _wait_for_room(self) -> bool:
        """Wait until the broker has taken a message of a full queue, or half of a queue that was full for long.

        Return whether the queue is empty now: it cannot have more room than that.
        """
        full = len(self._producer)
        self._call(partial(self._producer.poll, FULL_QUEUE_SECONDS if full else 0))
        while (left := len(self._producer)) > (full // 2 if self._admission.paused else full - 1):
            if not left or self._rejections:
                break
            self._admission.output_waits(left)
            self._call(partial(self._producer.poll, FULL_QUEUE_SECONDS))
        self._admission.output_flows()
        return not left

    @staticmethod
    def _call(serving: Callable[[], int]) -> int:
        try:
            return serving()
        except SystemError as broken:
            # The client raises a fatal error beside our callbacks, which Python takes for a fault in the client itself.
            raise broken.__cause__ or broken from None

    def close(self) -> None:
        """Drop unsent records, and close the producer: a worker process outlives its task."""
        with warnings.catch_warnings():
            # It warns that a fenced producer cannot abort, which is expected.
            warnings.simplefilter("ignore", RuntimeWarning)
            self._calls.close()

    def _drop(self, producer: Producer) -> None:
        self._abort(producer)
        producer.purge()
        with contextlib.suppress(KafkaException):
            # A fenced producer cannot even flush; it has to be closed all the same.
            producer.flush(0)
        producer.close()

    def _abort(self, producer: Producer) -> None:
        """Do nothing: records without a transaction are sent, or dropped."""


class TransactionalSession(ProducerSession):
    """Owner of a producer with a transactional id: each chunk is a transaction of it."""

    @property
    def transactional_id(self) -> str:
        return str(self._settings["transactional.id"])

    def find_coordinator(self) -> None:
        """Connect the client to a broker, so that it finds the coordinator at once when it is needed."""
        # Otherwise it looks again half a second later. The first answer comes over the address that was given, the
        # second from a broker.
        for _ in range(2):
            self._producer.list_topics(self._own_topic, timeout=ANSWER_SECONDS)

    def fence(self) -> None:
        """Fence the last producer of this transactional id, and abort the transaction that it has left open."""
        self._producer.init_transactions(ANSWER_SECONDS)
        # Late requests from before this have an older epoch.
        self.forget_connections()

    def begin(self) -> None:
        """Begin a transaction."""
        self._producer.begin_transaction()

    def commit(self, offsets: Iterable[tuple[list[TopicPartition], object]], seconds: float) -> None:
        """Commit the transaction with these offsets, each with the metadata of its group, or raise NoAnswerError."""
        # librdkafka does not return from this if the group's coordinator went down at the wrong moment.
        self._calls.within(seconds, "the chunk was stored", partial(_commit, self._producer, offsets))

    def _abort(self, producer: Producer) -> None:
        # A transaction that cannot be aborted here ends when the next producer is opened.
        with contextlib.suppress(KafkaException):
            producer.abort_transaction(ABORT_SECONDS)


def _commit(producer: Producer, offsets: Iterable[tuple[list[TopicPartition], object]]) -> None:
    for positions, group in offsets:
        producer.send_offsets_to_transaction(positions, group)
    producer.commit_transaction()


def _note(
    rejections: list[Rejection],
    source_offset: int | None,
    kind: FaultKind,
    error: KafkaError | None,
    message: Message,
) -> None:
    if error is not None:
        rejections.append(Rejection(error, message.topic(), source_offset, kind))


def _take_nothing(*_message: Any) -> None:
    raise BufferError("each record is traced now: it is written by itself")
