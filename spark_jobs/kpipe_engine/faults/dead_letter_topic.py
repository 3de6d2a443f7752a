"""Records that could not pass: in the dead-letter topic, or without one, the stop of the partition."""

from __future__ import annotations

from typing import Protocol

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.permissions import PAGE
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDeadLetter
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.errors import PartitionHaltedError, UnwritableRecordError, is_too_large, is_untimely
from kpipe_engine.faults.dead_letter_builder import choose_write
from kpipe_engine.faults.time_limit import NO_LIMIT, Limit
from kpipe_engine.writing.producer_session import PARTITIONER_CHOOSES, ProducerSession


class DeadLetters(Protocol):
    """Place for records that could not pass, each with its fault."""

    def take(self, message: SourceMessage, fault: Fault) -> None:
        """Make the record terminal, or stop the partition in front of it."""


class DeadLetterTopic:
    """Writer of records with the details of their fault, in the declared format and dialect."""

    def __init__(
        self, declared: KafkaDeadLetter, plan: Plan, session: ProducerSession, limit: Limit = NO_LIMIT
    ) -> None:
        self._topic = declared.topic
        self._write = choose_write(declared, plan, limit)
        self._session = session

    def take(self, message: SourceMessage, fault: Fault) -> None:
        if fault.kind == "dead_letter":
            raise PartitionHaltedError(_cannot_write(message, self._topic, fault), message.offset())
        if fault.kind == "source":
            raise PartitionHaltedError(cannot_read(message, fault), message.offset())
        key, value, headers = self._write(message, fault)
        try:
            self._session.produce(
                message.offset(),
                "dead_letter",
                self._topic,
                value,
                key,
                PARTITIONER_CHOOSES,
                message.timestamp()[1],
                headers,
            )
        except UnwritableRecordError as error:
            refused = error.fault("dead_letter")
            raise PartitionHaltedError(_cannot_write(message, self._topic, refused), message.offset()) from error


class NoDeadLetters:
    """Stop of a partition at its first fault, in a pipeline without a dead-letter topic."""

    def take(self, message: SourceMessage, fault: Fault) -> None:
        if fault.kind == "source":
            raise PartitionHaltedError(cannot_read(message, fault), message.offset())
        raise PartitionHaltedError(
            f"offset {message.offset()}: {fault}; the pipeline has no dead-letter topic to put the record in: "
            "fix the segment or the record, or give the pipeline a dead_letter, then run again",
            message.offset(),
        )


def cannot_read(message: SourceMessage, fault: Fault) -> str:
    return (
        f"offset {message.offset()}: {fault}; no dead letter could hold what cannot be read: "
        "pass over it with on_fault='skip' or by hand, then run again"
    )


def _cannot_write(message: SourceMessage, topic: str, fault: Fault) -> str:
    if is_too_large(fault):
        remedy = "raise max.message.bytes of the dead-letter topic, and message.max.bytes in the connection"
    elif is_untimely(fault):
        remedy = "raise message.timestamp.after.max.ms of the dead-letter topic, and message.timestamp.before.max.ms"
    else:
        remedy = (
            f"see that the topic is there, that the connection's user may write to it (see {PAGE}), "
            "and that it is not compacted"
        )
    return (
        f"offset {message.offset()}: its dead letter cannot be written to topic {topic!r} ({fault.message}): "
        f"{remedy}, then run again"
    )
