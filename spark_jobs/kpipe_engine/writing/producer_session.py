"""Hands records to the producer, and awaits the broker's answers to them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from airflow_provider_kpipe.contract.client_log import ClientLog
from airflow_provider_kpipe.contract.faults.fault import Fault, FaultKind
from kpipe_engine.bounded_calls import BoundedCalls
from kpipe_engine.client_settings import Settings
from kpipe_engine.errors import (
    ChunkDroppedError,
    ChunkFailedError,
    ChunkRejectedError,
    is_record_error,
    may_be_fenced,
    stop_if_unwritable,
)
from kpipe_engine.writing.backpressure import Admission

ABORT_SECONDS = 10.0
FLUSH_SECONDS = 0.2
# How long to serve acknowledgements while the producer's queue is full, before trying again.
FULL_QUEUE_SECONDS = 0.1

OnDelivery: TypeAlias = Callable[[KafkaError | None, Message], None]


class Refusal(NamedTuple):
    """The broker's rejection of a record, with the offset of the record if that is known."""

    error: KafkaError
    topic: str | None
    source_offset: int | None
    kind: FaultKind


class ProducerSession:
    """A producer, and the rejections of its records by the broker.

    A broker rejects whole batches. To trace the record behind a rejection costs time for each record, so only
    `TracingSession` does it, when a chunk is redone.
    """

    def __init__(self, settings: Settings, own_topic: str, admission: Admission) -> None:
        self._own_topic = own_topic
        self._admission = admission
        self._refused: list[Refusal] = []
        self._log = ClientLog()
        self._has_transactions = "transactional.id" in settings
        self.producer = Producer(
            {
                **settings,
                "on_delivery": self._note_refusal,
                "throttle_cb": lambda event: admission.output_is_throttled(event.throttle_time),
                "logger": self._log,
            }
        )
        self.calls = BoundedCalls(self._drop)
        """Calls to the producer that may never return."""
        self.produce_untraced: Callable[..., None] = self.producer.produce
        """The quickest way, without a trace of a message's record. A BufferError means: not now, or not this way."""

    @property
    def refused(self) -> bool:
        """Tell whether the broker has rejected a record since the last `wait`."""
        return bool(self._refused)

    @property
    def lost_connection(self) -> bool:
        """Tell whether a connection of the producer was closed since `forget_connections`.

        A request that went over that connection may still arrive.
        """
        # The client's log lines wait to be served; it logs a closed connection before it retries a request.
        self.serve()
        return self._log.lost_connection

    def forget_connections(self) -> None:
        """Forget the closed connections: requests that have gone over them so far cannot do harm."""
        self.serve()
        self._log.lost_connection = False

    def on_delivery_of(self, source_offset: int, kind: FaultKind) -> OnDelivery | None:
        """Return the callback for a message that comes of this record, if the session traces records."""
        return None

    def wait(self) -> None:
        """Wait until the broker has acknowledged every record of the chunk, or raise if it has rejected one."""
        # The client never sends the records behind a rejected one in its transaction: a wait for them would take a
        # minute.
        while (left := self._call(partial(self.producer.flush, FLUSH_SECONDS))) and not self._refused:
            self._admission.output_waits(left)
        self._admission.output_flows()
        refused, self._refused = self._refused, []
        if not refused:
            return
        for each in refused:
            if may_be_fenced(each.error):
                raise KafkaException(each.error)
            stop_if_unwritable(each.topic, self._own_topic, each.error)
        faults = {
            each.source_offset: Fault.of(KafkaException(each.error), "kafka", each.kind)
            for each in refused
            if each.source_offset is not None and is_record_error(each.error)
        }
        if all(each.error.code() == KafkaError._PURGE_QUEUE for each in refused):
            raise ChunkDroppedError(f"{len(refused)} records were dropped before they were sent")
        raise ChunkFailedError(f"the broker refused {len(refused)} records, the first with: {refused[0].error}", faults)

    def raise_refusal(self) -> None:
        """Raise ChunkRejectedError if the producer takes nothing more because the broker has rejected a record.

        In a transaction, that concerns the records behind the rejected one. `wait` raises the reason.
        """
        self._call(partial(self.producer.poll, FLUSH_SECONDS))
        if self._refused:
            raise ChunkRejectedError

    def serve(self) -> None:
        """Process the broker's answers that have arrived so far."""
        self._call(partial(self.producer.poll, 0))

    def make_room(self) -> bool:
        """Wait until the broker has taken a message of a full queue, or half of a queue that was full for long.

        Return whether the queue is empty now: it cannot have more room than that.
        """
        full = len(self.producer)
        self._call(partial(self.producer.poll, FULL_QUEUE_SECONDS if full else 0))
        while (left := len(self.producer)) > (full // 2 if self._admission.paused else full - 1) and not self._refused:
            if not left:
                break
            self._admission.output_waits(left)
            self._call(partial(self.producer.poll, FULL_QUEUE_SECONDS))
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
            self.calls.close()

    def _drop(self) -> None:
        if self._has_transactions:
            # A transaction that cannot be aborted here ends when the next producer is opened.
            with contextlib.suppress(KafkaException):
                self.producer.abort_transaction(ABORT_SECONDS)
        self.producer.purge()
        with contextlib.suppress(KafkaException):
            # A fenced producer cannot even flush; it has to be closed all the same.
            self.producer.flush(0)
        self.producer.close()

    def _note_refusal(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._refused.append(Refusal(error, message.topic(), None, "destination"))


class TracingSession(ProducerSession):
    """Knows the record behind a rejection: it sends every record alone, and traces it."""

    def __init__(self, settings: Settings, own_topic: str, admission: Admission) -> None:
        super().__init__({**settings, "batch.num.messages": 1}, own_topic, admission)
        self.produce_untraced = _take_nothing

    def on_delivery_of(self, source_offset: int, kind: FaultKind) -> OnDelivery | None:
        return partial(self._note_traced, source_offset, kind)

    def _note_traced(self, source_offset: int, kind: FaultKind, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._refused.append(Refusal(error, message.topic(), source_offset, kind))


def _take_nothing(*_message: Any) -> None:
    raise BufferError("each record is traced now: it is written by itself")
