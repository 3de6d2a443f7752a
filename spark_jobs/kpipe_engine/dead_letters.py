"""Where records go that could not pass: the dead-letter topic, or nowhere, and then the partition stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeAlias, cast

from airflow_provider_kpipe.contract.dead_letter import (
    TIMESTAMP_KINDS,
    Coordinates,
    DeadLetter,
    Header,
    bounded,
)
from airflow_provider_kpipe.contract.dead_letter_dialects import DIALECTS
from airflow_provider_kpipe.contract.dead_letter_messages import (
    DeadLetterMessage,
    has_fault_headers,
    read_dead_letter,
    write_envelope,
    write_raw,
)
from airflow_provider_kpipe.contract.faults import Fault
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.pipeline import KafkaDeadLetter
from airflow_provider_kpipe.contract.plan import Plan
from kpipe_engine.dead_letter_mapper import Mapper
from kpipe_engine.delivery import Delivery
from kpipe_engine.destination import produce
from kpipe_engine.errors import PartitionStoppedError, UnwritableRecordError
from kpipe_engine.record import SourceMessage
from kpipe_engine.restored import RestoredMessage

Write: TypeAlias = Callable[[DeadLetter], DeadLetterMessage]


class DeadLetters(Protocol):
    """Takes a record and what it could not pass."""

    def take(self, message: SourceMessage, fault: Fault) -> None:
        """Make the record terminal, or stop the partition in front of it."""


class DeadLetterTopic:
    """Writes records with the story of their fault, in the format and the dialect that were declared."""

    def __init__(self, declared: KafkaDeadLetter, plan: Plan, delivery: Delivery) -> None:
        self._topic = declared.topic
        self._write = _choose_write(declared)
        self._plan = plan
        self._delivery = delivery

    def take(self, message: SourceMessage, fault: Fault) -> None:
        if fault.kind == "dead_letter":
            raise PartitionStoppedError(_cannot_write(message, self._topic, fault), message.offset())
        if fault.kind == "source":
            raise PartitionStoppedError(
                f"offset {message.offset()}: {fault}; no dead letter could hold what cannot be read: "
                "pass over it with on_fault='skip' or by hand, then run again",
                message.offset(),
            )
        written = self._write(self._letter(message, fault))
        try:
            produce(
                self._delivery,
                message.offset(),
                "dead_letter",
                topic=self._topic,
                key=written.key,
                value=written.value,
                headers=written.headers,
                timestamp=message.timestamp()[1],
            )
        except UnwritableRecordError as error:
            refused = error.fault("dead_letter")
            raise PartitionStoppedError(_cannot_write(message, self._topic, refused), message.offset()) from error

    def _letter(self, message: SourceMessage, fault: Fault) -> DeadLetter:
        # Consumed headers have bytes or None for values, never text.
        headers = cast("Sequence[Header]", message.headers() or ())
        kind, timestamp = message.timestamp()
        letter = DeadLetter(
            key=message.key(),
            value=message.value(),
            headers=tuple(headers),
            source=Coordinates(
                message.topic(), message.partition(), message.offset(), timestamp, TIMESTAMP_KINDS[kind]
            ),
            fault=bounded(fault),
            pipeline=self._plan.pipeline,
            group=self._plan.group,
            run_key=self._plan.run_key,
        )
        if not headers or not has_fault_headers(headers):
            return letter
        previous = read_dead_letter(letter.key, letter.value, headers)
        if previous is None:
            return letter
        if previous.pipeline == self._plan.pipeline or previous.fault.exception_class:
            return letter.after(previous)
        # Another pipeline redrove it, and there it passed: here, it faults for the first time.
        return replace(letter, headers=previous.headers)


class RefaultedLetters:
    """Gives up the dead letter that a restored record came in: it knows how often that has happened before."""

    def __init__(self, letters: DeadLetters) -> None:
        self._letters = letters

    def take(self, message: SourceMessage, fault: Fault) -> None:
        self._letters.take(message.original if isinstance(message, RestoredMessage) else message, fault)


class NoDeadLetters:
    """A pipeline without a dead-letter topic stops a partition at its first fault."""

    def take(self, message: SourceMessage, fault: Fault) -> None:
        raise PartitionStoppedError(
            f"offset {message.offset()}: {fault}; the pipeline has no dead-letter topic to put the record in: "
            "mend the segment or the record, or give the pipeline a dead_letter, then run again",
            message.offset(),
        )


def choose_dead_letters(job: Job, delivery: Delivery) -> DeadLetters:
    if job.pipeline.dead_letter is None:
        return NoDeadLetters()
    topic = DeadLetterTopic(job.pipeline.dead_letter, job.plan, delivery)
    return RefaultedLetters(topic) if job.redrive else topic


def _choose_write(declared: KafkaDeadLetter) -> Write:
    if declared.mapper is not None:
        return Mapper(declared.mapper)
    write = write_envelope if declared.format == "envelope" else write_raw
    return partial(write, dialect=DIALECTS[declared.dialect])


def _cannot_write(message: SourceMessage, topic: str, fault: Fault) -> str:
    return (
        f"offset {message.offset()}: its dead letter cannot be written to {topic!r} ({fault.message}): "
        "raise max.message.bytes of the dead-letter topic, and message.max.bytes in the connection, then run again"
    )
