"""When a chunk counts as delivered: two deliveries with the same methods."""

from __future__ import annotations

import math
from functools import partial
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException, Producer

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.permissions import REMEDY
from kpipe_engine.assignment.claiming import Claims, Positions
from kpipe_engine.client_settings import ANSWER_SECONDS, Settings, producer_settings, transaction_timeout_ms
from kpipe_engine.errors import ChunkDroppedError, ChunkFailedError, PartitionHaltedError, needing
from kpipe_engine.reading.details_group import DetailsGroup
from kpipe_engine.reading.range_reader import RangeReader
from kpipe_engine.writing.backpressure import Admission
from kpipe_engine.writing.producer_session import ProducerSession

STORE_SECONDS = 30.0


class Delivery(Protocol):
    """Opens and closes chunks. `acks` is where records go, and where their acknowledgement is awaited."""

    acks: ProducerSession
    longest: float
    """When the broker gives up a chunk that something was written of, in seconds."""

    def open(self) -> None:
        """Become the writer of the partition; a predecessor that still runs is fenced where that can be done."""

    @property
    def lost_connection(self) -> bool:
        """Whether the next chunk needs a new producer: a request to this one's may still be on its way, and would be
        taken for one of that chunk."""

    def begin(self) -> None:
        """Start a chunk."""

    def store(self, positions: Positions) -> None:
        """Await every acknowledgement of the chunk, then make its offsets the stored ones."""

    def renew(self, kind: type[ProducerSession]) -> None:
        """Start over with a new producer; a chunk that is open comes to nothing."""

    def close(self) -> None:
        """Give the producer up, and with it a chunk that is open."""


class TransactionalWriter:
    """A chunk is one transaction: outputs, dead letters and the stored offset are seen together or not at all."""

    def __init__(
        self,
        settings: Settings,
        job: Job,
        first: PartitionRange,
        source: RangeReader,
        details: DetailsGroup,
        admission: Admission,
    ) -> None:
        self._admission = admission
        self._needs = {
            "transactional_id": job.plan.transactional_id(first.partition, first.slot),
            "group": job.plan.progress_group(first.slot),
            "topic": job.plan.topic,
        }
        self._settings = {
            **producer_settings(settings, job.pipeline.destination),
            "transactional.id": self._needs["transactional_id"],
            "transaction.timeout.ms": transaction_timeout_ms(job.pipeline),
            # Without it, the client is silent about some of the connections that are closed.
            "debug": "broker",
        }
        self.longest = transaction_timeout_ms(job.pipeline) / 1000
        self._topic = job.output_topic
        self._written = job.written_topics
        self._details = details
        self._group = source.consumer.consumer_group_metadata()
        self.acks = ProducerSession(self._settings, self._topic, self._admission)

    def open(self) -> None:
        # The coordinator is found at once if a broker is connected by then; otherwise the client looks again half a
        # second later. The first answer comes over the address that was given, the second from a broker.
        for _ in range(2):
            self.acks.producer.list_topics(self._topic, timeout=ANSWER_SECONDS)
        with needing(**self._needs):
            self.acks.producer.init_transactions(ANSWER_SECONDS)
        # What comes late of before has an older epoch.
        self.acks.forget_connections()

    def renew(self, kind: type[ProducerSession]) -> None:
        self.close()
        self.acks = kind(self._settings, self._topic, self._admission)
        self.open()

    @property
    def lost_connection(self) -> bool:
        return self.acks.lost_connection

    def begin(self) -> None:
        if self.lost_connection:
            raise ChunkFailedError("a connection to the broker was lost since the producer was opened")
        self.acks.producer.begin_transaction()

    def store(self, positions: Positions) -> None:
        try:
            self.acks.wait()
        except ChunkDroppedError:
            self._stop_if_unwritable()
            raise
        # librdkafka does not come back from this when the group's coordinator went down at the wrong moment.
        commit = partial(self._commit, self.acks.producer, positions)
        with needing(**self._needs):
            self.acks.calls.within(STORE_SECONDS, "the chunk was stored", commit)

    def _stop_if_unwritable(self) -> None:
        """A transaction in which a topic may not be written to says so when something else is asked of it."""
        try:
            self.acks.producer.begin_transaction()
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise PartitionHaltedError(
                    f"the connection's user may not write to one of the topics {', '.join(map(repr, self._written))}, "
                    f"or to one that a segment has chosen ({error.str()}): {REMEDY}"
                ) from failure

    def _commit(self, producer: Producer, positions: Positions) -> None:
        if positions.details:
            producer.send_offsets_to_transaction(positions.details, self._details.metadata())
        if positions.progress:
            producer.send_offsets_to_transaction(positions.progress, self._group)
        producer.commit_transaction()

    def close(self) -> None:
        self.acks.close()


class AtLeastOnceWriter:
    """A chunk is stored after its acknowledgements: a crash in between has it written again."""

    longest = math.inf

    def __init__(
        self,
        settings: Settings,
        job: Job,
        first: PartitionRange,
        source: RangeReader,
        ownership: Claims,
        details: DetailsGroup,
        admission: Admission,
    ) -> None:
        self._admission = admission
        self._settings = producer_settings(settings, job.pipeline.destination)
        self._topic = job.output_topic
        self._details = details
        self._source = source
        self._ownership = ownership
        self._needs = {"group": job.plan.progress_group(first.slot), "topic": job.plan.topic}
        self.acks = ProducerSession(self._settings, self._topic, self._admission)

    def open(self) -> None:
        """No predecessor can be fenced here: what it still writes are the duplicates that were agreed to."""

    def renew(self, kind: type[ProducerSession]) -> None:
        self.close()
        self.acks = kind(self._settings, self._topic, self._admission)

    @property
    def lost_connection(self) -> bool:
        """Nothing ends a chunk here that could come late; what is written twice are the duplicates agreed to."""
        return False

    def begin(self) -> None:
        """Nothing marks the start of a chunk here."""

    def store(self, positions: Positions) -> None:
        self.acks.wait()
        if not positions.progress:
            return
        # Nothing fences us here: that somebody has taken a partition over has to be looked for.
        if lost := self._ownership.lost([each.partition for each in positions.progress]):
            raise ChunkFailedError(f"partition {lost[0]} was taken over")
        if positions.details:
            # First: progress that says that there are some may not be without them.
            self._details.commit(positions.details, STORE_SECONDS)
        with needing(**self._needs):
            results = self._source.commit(positions.progress, STORE_SECONDS)
        for result in results:
            if result.error is not None:
                raise ChunkFailedError(
                    f"offset {result.offset} of partition {result.partition} could not be stored: {result.error}"
                )

    def close(self) -> None:
        self.acks.close()
