"""Two deliveries with the same methods, which differ in when a chunk counts as delivered."""

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
    """Opens and closes chunks. `acks` takes the records, and awaits their acknowledgement."""

    acks: ProducerSession
    longest: float
    """Seconds after which the broker aborts a chunk, counted from its first write."""

    def open(self) -> None:
        """Become the writer of the partition, and fence a predecessor that still runs, if the delivery can."""

    @property
    def lost_connection(self) -> bool:
        """Tell whether the next chunk needs a new producer.

        A request of this one may still be on its way, and the broker would take it for one of that chunk.
        """

    def begin(self) -> None:
        """Start a chunk."""

    def store(self, positions: Positions) -> None:
        """Await every acknowledgement of the chunk, then store its offsets."""

    def renew(self, kind: type[ProducerSession]) -> None:
        """Start over with a new producer; a chunk that is open fails."""

    def close(self) -> None:
        """Close the producer, and give up a chunk that is open."""


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
            # Without it, the client logs only some of the connections that are closed.
            "debug": "broker",
        }
        self.longest = transaction_timeout_ms(job.pipeline) / 1000
        self._topic = job.output_topic
        self._written = job.written_topics
        self._details = details
        self._group = source.consumer.consumer_group_metadata()
        self.acks = ProducerSession(self._settings, self._topic, self._admission)

    def open(self) -> None:
        # The client finds the coordinator at once if it is connected to a broker by then; otherwise it looks again half
        # a second later. The first answer comes over the address that was given, the second from a broker.
        for _ in range(2):
            self.acks.producer.list_topics(self._topic, timeout=ANSWER_SECONDS)
        with needing(**self._needs):
            self.acks.producer.init_transactions(ANSWER_SECONDS)
        # Late requests from before this have an older epoch.
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
        # librdkafka does not return from this if the group's coordinator went down at the wrong moment.
        commit = partial(self._commit, self.acks.producer, positions)
        with needing(**self._needs):
            self.acks.calls.within(STORE_SECONDS, "the chunk was stored", commit)

    def _stop_if_unwritable(self) -> None:
        """Stop the partition if the transaction may not write to a topic, which only a further call reveals."""
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
    """Stores a chunk after its acknowledgements: after a crash in between, the chunk is written again."""

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
        """Leave a predecessor alone, as none can be fenced here: its late writes are duplicates that were agreed to."""

    def renew(self, kind: type[ProducerSession]) -> None:
        self.close()
        self.acks = kind(self._settings, self._topic, self._admission)

    @property
    def lost_connection(self) -> bool:
        """Return False: no request that could come late ends a chunk here, and duplicates are allowed."""
        return False

    def begin(self) -> None:
        """Do nothing: a chunk has no explicit start here."""

    def store(self, positions: Positions) -> None:
        self.acks.wait()
        if not positions.progress:
            return
        # A worker cannot be fenced here, so it has to look whether another one has taken a partition over.
        if lost := self._ownership.lost([each.partition for each in positions.progress]):
            raise ChunkFailedError(f"partition {lost[0]} was taken over")
        if positions.details:
            # Details come first: progress that refers to details needs them.
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
