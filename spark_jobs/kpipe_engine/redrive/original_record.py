"""The record inside a dead letter, as it was before it became one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from airflow_provider_kpipe.contract.dead_letters.dead_letter import TIMESTAMP_KINDS, DeadLetter
from airflow_provider_kpipe.contract.dead_letters.dialects import redrive_headers
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline
from airflow_provider_kpipe.contract.redrive.redrive import RedriveTarget, home_of, restored_timestamp
from airflow_provider_kpipe.record import Header, SourceMessage
from kpipe_engine.writing.destination import Destination
from kpipe_engine.writing.producer_session import PARTITIONER_CHOOSES, ProducerSession


class OriginalRecord:
    """Record with its own key, value, headers and timestamp, and its letter's offset, by which the engine knows it."""

    __slots__ = ("_headers", "_letter", "_partition", "original")

    def __init__(self, original: SourceMessage, letter: DeadLetter, partition: int, headers: list[Header]) -> None:
        self.original = original
        self._letter = letter
        self._partition = partition
        self._headers = headers

    def topic(self) -> str:
        return self.original.topic()

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self.original.offset()

    def key(self) -> bytes | None:
        return self._letter.key

    def value(self) -> bytes | None:
        return self._letter.value

    def headers(self) -> list[Header] | None:
        return self._headers or None

    def timestamp(self) -> tuple[int, int]:
        kind, written_at = self.original.timestamp()
        if self._letter.source.timestamp >= 0:
            kind = TIMESTAMP_KINDS.index(self._letter.source.timestamp_kind)
        return kind, restored_timestamp(self._letter, written_at)

    def leader_epoch(self) -> int | None:
        return self.original.leader_epoch()


Restore: TypeAlias = Callable[[SourceMessage, DeadLetter], OriginalRecord]


def choose_restore(pipeline: KafkaPipeline, target: RedriveTarget) -> Restore:
    if target == "source":
        return partial(_for_source, pipeline.source.topic)
    return partial(_for_output, pipeline.source.topic if pipeline.destination.keep_partition else None)


def back_to_source(pipeline: KafkaPipeline, session: ProducerSession) -> Destination:
    """Return the source topic as a destination: each record goes to its old partition, or to the one of its key."""
    declared = pipeline.destination
    topic = KafkaDestination(
        pipeline.source.topic, keep_partition=True, partitioner=declared.partitioner, compression=declared.compression
    )
    return Destination(topic, session)


def _for_source(topic: str, original: SourceMessage, letter: DeadLetter) -> OriginalRecord:
    """Restore a record with its own headers, and those that let a later fault count this one and name the first."""
    home = home_of(letter, topic)
    told = redrive_headers(replace(letter, first=letter.first_fault))
    return OriginalRecord(
        original, letter, PARTITIONER_CHOOSES if home is None else home, headers=[*letter.headers, *told]
    )


def _for_output(kept_topic: str | None, original: SourceMessage, letter: DeadLetter) -> OriginalRecord:
    """Restore a record for the output; `kept_topic` is the source topic if outputs keep their record's partition."""
    home = home_of(letter, kept_topic) if kept_topic is not None else None
    return OriginalRecord(
        original, letter, original.partition() if home is None else home, headers=list(letter.headers)
    )
