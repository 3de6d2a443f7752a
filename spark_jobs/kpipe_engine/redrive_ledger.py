"""Which dead letters of a partition have been redriven: read before the first one, written with each."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from datetime import datetime, timezone
from typing import Literal

from confluent_kafka import Consumer, TopicPartition

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.pipeline import KafkaSource
from airflow_provider_kpipe.contract.redrive import Redrive
from airflow_provider_kpipe.contract.redrive_ledger import LedgerEntry, Redriven, ledger_key
from kpipe_engine.acknowledgements import Acknowledgements
from kpipe_engine.clients import ANSWER_SECONDS, Settings
from kpipe_engine.delivery import Delivery
from kpipe_engine.destination import produce
from kpipe_engine.source import Source

READ_RECORDS = 10_000


class Ledger:
    """One partition of the ledger topic. Only the worker of the dead letters' partition writes to it."""

    def __init__(self, job: Job, redrive: Redrive, partition: int, settings: Settings, delivery: Delivery) -> None:
        self._topic, self._partition = redrive.ledger_topic, partition
        self._letters = job.plan
        self._plan = replace(job.plan, topic=redrive.ledger_topic, isolation_level="read_committed", ranges=())
        (self._range,) = [each for each in job.plan.ranges if each.partition == partition]
        self._settings = settings
        self._delivery = delivery
        self._read_under: Acknowledgements | None = None
        self._redriven: Container[int] = ()

    def redriven(self) -> Container[int]:
        """Offsets of dead letters. Read anew under each producer: the last one may have been fenced off by another
        redrive, and what that did meanwhile is complete only when our producer has fenced it in turn."""
        if self._read_under is not self._delivery.acks:
            self._redriven = self._read()
            self._read_under = self._delivery.acks
        return self._redriven

    def enter(self, source_offset: int, outcome: Literal["redriven", "parked"]) -> None:
        entry = LedgerEntry(self._letters.run_key, outcome, datetime.now(timezone.utc).isoformat(timespec="seconds"))
        produce(
            self._delivery,
            source_offset,
            "dead_letter",
            self._topic,
            entry.to_text().encode(),
            ledger_key(self._letters.topic_id, source_offset),
            self._partition,
        )

    def _read(self) -> Redriven:
        redriven = Redriven(self._letters.topic_id, self._range)
        source = Source(self._settings, KafkaSource(self._topic), self._plan, self._range)
        try:
            extent = self._extent(source.consumer)
            source.start_at(extent, extent.start)
            while not source.finished:
                for message in source.read(READ_RECORDS):
                    redriven.note(message.key(), message.value())
        finally:
            source.close()
        return redriven

    def _extent(self, consumer: Consumer) -> PartitionRange:
        # As in the source: the partition's leader is known before it is asked.
        consumer.list_topics(self._topic, timeout=ANSWER_SECONDS)
        first, after_last = consumer.get_watermark_offsets(
            TopicPartition(self._topic, self._partition), timeout=ANSWER_SECONDS
        )
        return PartitionRange(self._partition, first, after_last, None)
