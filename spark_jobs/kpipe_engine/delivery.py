"""When a chunk counts as delivered: two deliveries with the same methods."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.plan import progress_group_of
from airflow_provider_kpipe.contract.redrive import written_topics
from kpipe_engine.acknowledgements import Acknowledgements
from kpipe_engine.admission import Admission
from kpipe_engine.clients import ANSWER_SECONDS, Settings, producer_settings, transaction_timeout_ms
from kpipe_engine.deadline import returns_within
from kpipe_engine.errors import ChunkDroppedError, ChunkFailedError, PartitionStoppedError, needing
from kpipe_engine.ownership import Ownership
from kpipe_engine.source import Source

ABORT_SECONDS = 10.0
STORE_SECONDS = 30.0


class Delivery(Protocol):
    """Opens and closes chunks. `acks` is where records go, and where their acknowledgement is awaited."""

    acks: Acknowledgements

    def open(self) -> None:
        """Become the writer of the partition; a predecessor that still runs is fenced where that can be done."""

    def begin(self) -> None:
        """Start a chunk."""

    def store(self, positions: list[TopicPartition]) -> None:
        """Await every acknowledgement of the chunk, then make its offsets the stored ones."""

    def renew(self, kind: type[Acknowledgements]) -> None:
        """Start over with a new producer; a chunk that is open comes to nothing."""

    def close(self) -> None:
        """Give the producer up, and with it a chunk that is open."""


class ExactlyOnce:
    """A chunk is one transaction: outputs, dead letters and the stored offset are seen together or not at all."""

    def __init__(
        self, settings: Settings, job: Job, first: PartitionRange, source: Source, admission: Admission
    ) -> None:
        self._admission = admission
        self._needs = {
            "transactional_id": job.plan.transactional_id(first.partition, first.slot),
            "group": progress_group_of(job.plan.group, first.slot),
            "topic": job.plan.topic,
        }
        self._settings = {
            **producer_settings(settings, job.pipeline.destination),
            "transactional.id": self._needs["transactional_id"],
            "transaction.timeout.ms": transaction_timeout_ms(job.pipeline),
        }
        self._topic = job.output_topic
        self._written = written_topics(job.pipeline, job.redrive) if job.redrive else job.pipeline.written_topics
        self._group = source.consumer.consumer_group_metadata()
        self.acks = Acknowledgements(self._settings, self._topic, self._admission)
        self._stuck = False

    def open(self) -> None:
        # The coordinator is found at once if a broker is connected by then; otherwise the client looks again half a
        # second later. The first answer comes over the address that was given, the second from a broker.
        for _ in range(2):
            self.acks.producer.list_topics(self._topic, timeout=ANSWER_SECONDS)
        with needing(**self._needs):
            self.acks.producer.init_transactions()

    def renew(self, kind: type[Acknowledgements]) -> None:
        self.close()
        self.acks = kind(self._settings, self._topic, self._admission)
        self.open()

    def begin(self) -> None:
        self.acks.producer.begin_transaction()

    def store(self, positions: list[TopicPartition]) -> None:
        try:
            self.acks.wait()
        except ChunkDroppedError:
            self._stop_if_unwritable()
            raise
        # librdkafka does not come back from this when the group's coordinator went down at the wrong moment.
        with needing(**self._needs):
            self._stuck = not returns_within(STORE_SECONDS, partial(self._commit, self.acks.producer, positions))
        if self._stuck:
            raise ChunkFailedError(f"the broker did not answer within {STORE_SECONDS:.0f} s when the chunk was stored")

    def _stop_if_unwritable(self) -> None:
        """A transaction in which a topic may not be written to says so when something else is asked of it."""
        try:
            self.acks.producer.begin_transaction()
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise PartitionStoppedError(
                    f"the connection's user may not write to one of the topics {', '.join(map(repr, self._written))}, "
                    f"or to one that a segment has chosen ({error.str()}): see what it has to be allowed in "
                    "docker/README.md, then run again"
                ) from failure

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
        self,
        settings: Settings,
        job: Job,
        first: PartitionRange,
        source: Source,
        ownership: Ownership,
        admission: Admission,
    ) -> None:
        self._admission = admission
        self._settings = producer_settings(settings, job.pipeline.destination)
        self._topic = job.output_topic
        self._source = source
        self._ownership = ownership
        self._needs = {"group": progress_group_of(job.plan.group, first.slot), "topic": job.plan.topic}
        self.acks = Acknowledgements(self._settings, self._topic, self._admission)

    def open(self) -> None:
        """No predecessor can be fenced here: what it still writes are the duplicates that were agreed to."""

    def renew(self, kind: type[Acknowledgements]) -> None:
        self.close()
        self.acks = kind(self._settings, self._topic, self._admission)

    def begin(self) -> None:
        """Nothing marks the start of a chunk here."""

    def store(self, positions: list[TopicPartition]) -> None:
        self.acks.wait()
        if not positions:
            return
        # Nothing fences us here: that somebody has taken a partition over has to be looked for.
        if lost := self._ownership.lost([each.partition for each in positions]):
            raise ChunkFailedError(f"partition {lost[0]} was taken over")
        with needing(**self._needs):
            results = self._source.consumer.commit(offsets=positions, asynchronous=False)
        for result in results:
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
    return AtLeastOnce(settings, job, first, source, ownership, admission)
