"""Two ways to deliver a chunk, with the same methods, which differ in when a chunk counts as delivered."""

from __future__ import annotations

import math
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.permissions import REMEDY
from kpipe_engine.assignment.claiming import Claims
from kpipe_engine.assignment.progress_store import Entries
from kpipe_engine.client_settings import Settings, producer_settings, transaction_timeout_ms
from kpipe_engine.errors import ChunkDroppedError, ChunkFailedError, PartitionHaltedError, needing
from kpipe_engine.reading.details_group import DetailsGroup
from kpipe_engine.reading.shared_consumer import SharedConsumer
from kpipe_engine.writing.producer_session import ProducerSession, TransactionalSession

STORE_SECONDS = 30.0


class ChunkWriter(Protocol):
    """Writer that opens and closes chunks, whose records a session takes."""

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

    def store(self, entries: Entries) -> None:
        """Await every acknowledgement of the chunk, then store its offsets."""

    def renew(self, *, isolates: bool) -> None:
        """Start over with a new producer, which isolates records or not; a chunk that is open fails."""


class TransactionalWriter:
    """Writer of chunks as transactions: outputs, dead letters and the stored offset are seen together or not at all."""

    def __init__(
        self, job: Job, slot: int, session: TransactionalSession, shared_consumer: SharedConsumer, details: DetailsGroup
    ) -> None:
        self._session, self._details = session, details
        self._group = shared_consumer.group_metadata()
        self._needs = {
            "transactional_id": session.transactional_id,
            "group": job.plan.progress_group(slot),
            "topic": job.plan.topic,
        }
        self._written = job.written_topics
        self.longest = transaction_timeout_ms(job.pipeline) / 1000

    def open(self) -> None:
        self._session.find_coordinator()
        with needing(**self._needs):
            self._session.fence()

    def renew(self, *, isolates: bool) -> None:
        self._session.renew(isolates=isolates)
        self.open()

    @property
    def lost_connection(self) -> bool:
        return self._session.lost_connection

    def begin(self) -> None:
        if self.lost_connection:
            raise ChunkFailedError("a connection to the broker was lost since the producer was opened")
        self._session.begin()

    def store(self, entries: Entries) -> None:
        try:
            self._session.wait()
        except ChunkDroppedError:
            self._stop_if_unwritable()
            raise
        offsets = [(entries.progress, self._group)] if entries.progress else []
        if entries.details:
            offsets.insert(0, (entries.details, self._details.metadata()))
        with needing(**self._needs):
            self._session.commit(offsets, STORE_SECONDS)

    def _stop_if_unwritable(self) -> None:
        """Stop the partition if the transaction may not write to a topic, which only a further call reveals."""
        try:
            self._session.begin()
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise PartitionHaltedError(
                    f"the connection's user may not write to one of the topics {', '.join(map(repr, self._written))}, "
                    f"or to one that a segment has chosen ({error.str()}): {REMEDY}"
                ) from failure


class AtLeastOnceWriter:
    """Writer that stores a chunk after its acknowledgements: after a crash in between, the chunk is written again."""

    longest = math.inf

    def __init__(
        self,
        job: Job,
        slot: int,
        session: ProducerSession,
        shared_consumer: SharedConsumer,
        claims: Claims,
        details: DetailsGroup,
    ) -> None:
        self._session, self._shared_consumer = session, shared_consumer
        self._claims, self._details = claims, details
        self._needs = {"group": job.plan.progress_group(slot), "topic": job.plan.topic}

    def open(self) -> None:
        """Leave a predecessor alone, as none can be fenced here: its late writes are duplicates that were agreed to."""

    def renew(self, *, isolates: bool) -> None:
        self._session.renew(isolates=isolates)

    @property
    def lost_connection(self) -> bool:
        """Return False: no request that could come late ends a chunk here, and duplicates are allowed."""
        return False

    def begin(self) -> None:
        """Do nothing: a chunk has no explicit start here."""

    def store(self, entries: Entries) -> None:
        self._session.wait()
        if not entries.progress:
            return
        # A worker cannot be fenced here, so it has to look whether another one has taken a partition over.
        if lost := self._claims.lost([each.partition for each in entries.progress]):
            raise ChunkFailedError(f"partition {lost[0]} was taken over")
        if entries.details:
            # Details come first: progress that refers to details needs them.
            self._details.commit(entries.details, STORE_SECONDS)
        with needing(**self._needs):
            results = self._shared_consumer.commit(entries.progress, STORE_SECONDS)
        for result in results:
            if result.error is not None:
                raise ChunkFailedError(
                    f"offset {result.offset} of partition {result.partition} could not be stored: {result.error}"
                )


def transactional_settings(settings: Settings, job: Job, transactional_id: str) -> dict[str, Any]:
    return {
        **producer_settings(settings, job.pipeline.destination),
        "transactional.id": transactional_id,
        "transaction.timeout.ms": transaction_timeout_ms(job.pipeline),
        # Without it, the client logs only some of the connections that are closed.
        "debug": "broker",
    }
