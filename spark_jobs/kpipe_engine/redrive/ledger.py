"""The ledger of redriven dead letters: a worker reads it before the first letter, and writes to it with each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Literal

from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter
from airflow_provider_kpipe.contract.documents import DocumentError, OtherVersionError
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaSource
from airflow_provider_kpipe.contract.redrive.decisions import Decisions
from airflow_provider_kpipe.contract.redrive.ledger import LedgerEntry, Place, Redriven, SourceRecord, ledger_key
from airflow_provider_kpipe.contract.redrive.redrive import Redrive
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.client_settings import Settings
from kpipe_engine.errors import PartitionHaltedError
from kpipe_engine.reading.messages import read_headers
from kpipe_engine.reading.range_reader import RangeReader
from kpipe_engine.reading.shared_consumer import SharedConsumer
from kpipe_engine.writing.producer_session import ProducerSession

READ_RECORDS = 10_000


class Ledger:
    """The ledger topic, as a worker reads and writes it.

    Only the worker of a partition of the dead letters writes to that partition of the ledger. It reads all partitions:
    another letter of a record may lie in any of them, and have been redriven before. The letters that other workers of
    the same run are about to redrive have no entry yet. Of a record's letters, the one in the lowest partition goes
    back, so a worker also looks at the letters in partitions below its own.
    """

    def __init__(
        self, job: Job, redrive: Redrive, own: Sequence[PartitionRange], settings: Settings, session: ProducerSession
    ) -> None:
        self._redrive, self._plan = redrive, job.plan
        self._own = {each.partition for each in own}
        self._settings = settings
        self._session = session
        self._read_under = 0
        """Generation of the producer under which the decisions were read."""
        self._decisions: Decisions | None = None

    def decisions(self) -> Decisions:
        """Return the decisions, read again under each new producer.

        Another redrive may have fenced the last producer. Its entries are complete only when our new producer has
        fenced it in turn.
        """
        if self._decisions is None or self._read_under != self._session.generation:
            self._decisions = Decisions(self._redrive, self._redriven())
            self._note_rivals(self._decisions)
            self._read_under = self._session.generation
        return self._decisions

    def enter(self, place: Place, outcome: Literal["redriven", "parked"], record: SourceRecord) -> None:
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        entry = LedgerEntry(self._plan.run_key, outcome, at, record)
        self._session.produce(
            place.offset,
            "dead_letter",
            self._redrive.ledger_topic,
            entry.to_text().encode(),
            ledger_key(self._plan.topic_id, place.offset),
            place.partition,
        )

    def _redriven(self) -> Redriven:
        redriven, topic = Redriven(self._plan.topic_id, self._plan.ranges), self._redrive.ledger_topic
        try:
            for entry in self._read(KafkaSource(topic), None):
                redriven.note(entry.partition(), entry.key(), entry.value())
        except DocumentError as error:
            raise PartitionHaltedError(f"the ledger topic {topic!r} cannot be read: {error}") from error
        return redriven

    def _note_rivals(self, decisions: Decisions) -> None:
        others = (each for each in self._plan.pending if each.partition not in self._own)
        below = [each for each in others if each.partition < max(self._own)]
        if self._redrive.each_letter or not below:
            return
        # Letters that have left the topic meanwhile are redriven by no worker.
        for message in self._read(KafkaSource(self._plan.topic, on_data_loss="skip"), below):
            try:
                letter = read_dead_letter(message.key(), message.value(), read_headers(message))
            except OtherVersionError:
                # The worker of its partition stops in front of it.
                continue
            decisions.note_rival(letter, Place(message.partition(), message.offset()), message.timestamp()[1])

    def _read(self, declared: KafkaSource, ranges: Iterable[PartitionRange] | None) -> Iterator[SourceMessage]:
        """Yield the committed messages of these ranges, or of the whole topic, partition by partition."""
        plan = replace(self._plan, topic=declared.topic, isolation_level="read_committed", ranges=())
        shared_consumer = SharedConsumer(self._settings, plan, slot=0)
        range_reader = RangeReader(shared_consumer, declared, declared.topic)
        try:
            for each in shared_consumer.extents(declared.topic) if ranges is None else ranges:
                range_reader.start_at(each, each.start)
                while not range_reader.finished:
                    yield from range_reader.read(READ_RECORDS)
        finally:
            shared_consumer.close()
