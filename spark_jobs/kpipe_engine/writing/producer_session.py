"""Where records are handed over, and where it is awaited what the broker says of them."""

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
    """What the broker said of a record, and which one it was, if that is known."""

    error: KafkaError
    topic: str | None
    source_offset: int | None
    kind: FaultKind


class ProducerSession:
    """A producer, and which of its records the broker refused.

    A broker refuses whole batches, and telling which record is behind a refusal costs time for each one: that is done
    only when a chunk is redone, by `TracedAcknowledgements`.
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
        """Those to the producer that may not return."""
        self.produce_untraced: Callable[..., None] = self.producer.produce
        """The quickest way, which does not say what record a message is of. A BufferError means: not now, or not so."""

    @property
    def refused(self) -> bool:
        """Whether the broker has refused something since the last `wait`."""
        return bool(self._refused)

    @property
    def lost_connection(self) -> bool:
        """Whether a connection was closed under the producer since it was opened for good: a request that went over
        it may arrive yet."""
        # What the client has said waits to be served; it says so before it tries a request again.
        self.serve()
        return self._log.lost_connection

    def forget_connections(self) -> None:
        """What has gone over them so far cannot do harm."""
        self.serve()
        self._log.lost_connection = False

    def on_delivery_of(self, source_offset: int, kind: FaultKind) -> OnDelivery | None:
        """What a message that comes of this record is to be sent with."""
        return None

    def wait(self) -> None:
        """Until the broker has acknowledged every record of the chunk, or refused one."""
        # What follows a refused record in its transaction is never sent: waiting for it would take a minute.
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
        """Where the producer takes nothing more because the broker has refused something: so it is in a transaction,
        for the records behind the refused one. `wait` says what that was."""
        self._call(partial(self.producer.poll, FLUSH_SECONDS))
        if self._refused:
            raise ChunkRejectedError

    def serve(self) -> None:
        """Take notice of what the broker has said so far."""
        self._call(partial(self.producer.poll, 0))

    def make_room(self) -> bool:
        """Wait until the broker has taken something of a full queue; of one that is full for long, a half.

        Says whether the queue is empty now: it has no more room than that.
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
            # A fatal error is raised beside our callbacks, which Python takes for a fault in the client itself.
            raise broken.__cause__ or broken from None

    def close(self) -> None:
        """Drop what has not been sent, and let go of the producer: a worker process outlives its task."""
        with warnings.catch_warnings():
            # It warns that a producer which was fenced cannot abort, which is as it should be.
            warnings.simplefilter("ignore", RuntimeWarning)
            self.calls.close()

    def _drop(self) -> None:
        if self._has_transactions:
            # What cannot be aborted here ends when the next producer is opened.
            with contextlib.suppress(KafkaException):
                self.producer.abort_transaction(ABORT_SECONDS)
        self.producer.purge()
        with contextlib.suppress(KafkaException):
            # One that was fenced does not even flush; it has to be closed all the same.
            self.producer.flush(0)
        self.producer.close()

    def _note_refusal(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._refused.append(Refusal(error, message.topic(), None, "destination"))


class TracingSession(ProducerSession):
    """Knows the record behind a refusal: every record travels alone, and none untraced."""

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
