"""When a chunk counts as delivered: two deliveries with the same methods."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from airflow_provider_kpipe.contract.faults import Fault, FaultKind
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets import PartitionRange
from kpipe_engine.admission import Admission
from kpipe_engine.clients import ANSWER_SECONDS, Settings, producer_settings, transaction_timeout_ms
from kpipe_engine.deadline import returns_within
from kpipe_engine.errors import ChunkFailedError, is_record_error, may_be_fenced, stop_if_unwritable
from kpipe_engine.ownership import Ownership
from kpipe_engine.source import Source

ABORT_SECONDS = 10.0
FLUSH_SECONDS = 0.2
STORE_SECONDS = 30.0
# How long to serve acknowledgements while the producer's queue is full, before trying again.
FULL_QUEUE_SECONDS = 0.1

OnDelivery = Callable[[KafkaError | None, Message], None]


class Delivery(Protocol):
    """Opens and closes chunks. `acks` is where records go, and where their acknowledgement is awaited."""

    acks: Acknowledgements

    def open(self) -> None:
        """Become the writer of the partition; a predecessor that still runs is fenced where that can be done."""

    def begin(self) -> None:
        """Start a chunk."""

    def store(self, positions: list[TopicPartition]) -> None:
        """Await every acknowledgement of the chunk, then make its offsets the stored ones."""

    def renew(self, tracing: bool) -> None:
        """Start over with a new producer; a chunk that is open comes to nothing."""

    def close(self) -> None:
        """Give the producer up, and with it a chunk that is open."""


class Refusal(NamedTuple):
    """What the broker said of a record, and which one it was, if that is known."""

    error: KafkaError
    topic: str | None
    source_offset: int | None
    kind: FaultKind


class Acknowledgements:
    """A producer, and which of its records the broker refused.

    A broker refuses whole batches, and telling which record is behind a refusal costs time for each one. So
    that is done only when a chunk is redone: then `tracing` is on, and every record travels alone.
    """

    def __init__(self, settings: Settings, own_topic: str, admission: Admission, tracing: bool) -> None:
        self._own_topic = own_topic
        self._admission = admission
        self._refused: list[Refusal] = []
        alone = {"batch.num.messages": 1} if tracing else {}
        self.producer = Producer({**settings, **alone, "on_delivery": self._note_refusal})
        self.tracing = tracing

    @property
    def refused(self) -> bool:
        """Whether the broker has refused something since the last `wait`."""
        return bool(self._refused)

    def on_delivery_of(self, source_offset: int, kind: FaultKind) -> OnDelivery | None:
        return partial(self._note_traced, source_offset, kind) if self.tracing else None

    def wait(self) -> None:
        """Until the broker has acknowledged every record of the chunk, or refused one."""
        # What follows a refused record in its transaction is never sent: waiting for it would take a minute.
        while self._call(partial(self.producer.flush, FLUSH_SECONDS)) and not self._refused:
            self._admission.output_waits()
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
        raise ChunkFailedError(f"the broker refused {len(refused)} records, the first with: {refused[0].error}", faults)

    def serve(self) -> None:
        """Take notice of what the broker has said so far."""
        self._call(partial(self.producer.poll, 0))

    def make_room(self) -> None:
        """Wait until the broker has taken something of a full queue; of one that is full for long, a half."""
        full = len(self.producer)
        self._call(partial(self.producer.poll, FULL_QUEUE_SECONDS))
        while len(self.producer) > (full // 2 if self._admission.paused else full - 1) and not self._refused:
            self._admission.output_waits()
            self._call(partial(self.producer.poll, FULL_QUEUE_SECONDS))
        self._admission.output_flows()

    @staticmethod
    def _call(serving: Callable[[], int]) -> int:
        try:
            return serving()
        except SystemError as broken:
            # A fatal error is raised beside our callbacks, which Python takes for a fault in the client itself.
            raise broken.__cause__ or broken from None

    def close(self) -> None:
        """Drop what has not been sent, and let go of the producer: a worker process outlives its task."""
        self.producer.purge()
        with contextlib.suppress(KafkaException):
            # One that was fenced does not even flush; it has to be closed all the same.
            self.producer.flush(0)
        with contextlib.suppress(KafkaException), warnings.catch_warnings():
            # It warns that a producer which was fenced cannot abort, which is as it should be.
            warnings.simplefilter("ignore", RuntimeWarning)
            self.producer.close()

    def _note_refusal(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._refused.append(Refusal(error, message.topic(), None, "destination"))

    def _note_traced(self, source_offset: int, kind: FaultKind, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._refused.append(Refusal(error, message.topic(), source_offset, kind))


class ExactlyOnce:
    """A chunk is one transaction: outputs, dead letters and the stored offset are seen together or not at all."""

    def __init__(
        self, settings: Settings, job: Job, first: PartitionRange, source: Source, admission: Admission
    ) -> None:
        self._admission = admission
        self._settings = {
            **producer_settings(settings, job.pipeline.destination),
            "transactional.id": job.plan.transactional_id(first.partition, first.slot),
            "transaction.timeout.ms": transaction_timeout_ms(job.pipeline),
        }
        self._topic = job.output_topic
        self._group = source.consumer.consumer_group_metadata()
        self.acks = Acknowledgements(self._settings, self._topic, self._admission, tracing=False)
        self._stuck = False

    def open(self) -> None:
        # The coordinator is found at once if a broker is connected by then; otherwise the client looks again half a
        # second later. The first answer comes over the address that was given, the second from a broker.
        for _ in range(2):
            self.acks.producer.list_topics(self._topic, timeout=ANSWER_SECONDS)
        self.acks.producer.init_transactions()

    def renew(self, tracing: bool) -> None:
        self.close()
        self.acks = Acknowledgements(self._settings, self._topic, self._admission, tracing)
        self.open()

    def begin(self) -> None:
        self.acks.producer.begin_transaction()

    def store(self, positions: list[TopicPartition]) -> None:
        self.acks.wait()
        # librdkafka does not come back from this when the group's coordinator went down at the wrong moment.
        self._stuck = not returns_within(STORE_SECONDS, partial(self._commit, self.acks.producer, positions))
        if self._stuck:
            raise ChunkFailedError(f"the broker did not answer within {STORE_SECONDS:.0f} s when the chunk was stored")

    def _commit(self, producer: Producer, positions: list[TopicPartition]) -> None:
        if positions:
            producer.send_offsets_to_transaction(positions, self._group)
        producer.commit_transaction()

    def close(self) -> None:
        if self._stuck:
            # Closing it would wait for the call that does not return. Whoever opens next has fenced it by then.
            self._stuck = False
            return
        # A producer is not used again after a failure: librdkafka cannot tell a late answer to an old request
        # from one to the next transaction. What cannot be aborted here ends when the next one is opened.
        with contextlib.suppress(KafkaException):
            self.acks.producer.abort_transaction(ABORT_SECONDS)
        self.acks.close()


class AtLeastOnce:
    """A chunk is stored after its acknowledgements: a crash in between has it written again."""

    def __init__(
        self, settings: Settings, job: Job, source: Source, ownership: Ownership, admission: Admission
    ) -> None:
        self._admission = admission
        self._settings = producer_settings(settings, job.pipeline.destination)
        self._topic = job.output_topic
        self._source = source
        self._ownership = ownership
        self.acks = Acknowledgements(self._settings, self._topic, self._admission, tracing=False)

    def open(self) -> None:
        """No predecessor can be fenced here: what it still writes are the duplicates that were agreed to."""

    def renew(self, tracing: bool) -> None:
        self.close()
        self.acks = Acknowledgements(self._settings, self._topic, self._admission, tracing)

    def begin(self) -> None:
        """Nothing marks the start of a chunk here."""

    def store(self, positions: list[TopicPartition]) -> None:
        self.acks.wait()
        if not positions:
            return
        # Nothing fences us here: that somebody has taken a partition over has to be looked for.
        if lost := self._ownership.lost([each.partition for each in positions]):
            raise ChunkFailedError(f"partition {lost[0]} was taken over")
        for result in self._source.consumer.commit(offsets=positions, asynchronous=False):
            if result.error is not None:
                raise ChunkFailedError(
                    f"offset {result.offset} of partition {result.partition} could not be stored: {result.error}"
                )

    def close(self) -> None:
        self.acks.close()


def choose_delivery(
    settings: Settings,
    job: Job,
    first: PartitionRange,
    source: Source,
    ownership: Ownership,
    admission: Admission,
) -> Delivery:
    if job.pipeline.delivery == "exactly_once":
        return ExactlyOnce(settings, job, first, source, admission)
    return AtLeastOnce(settings, job, source, ownership, admission)
