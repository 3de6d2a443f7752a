"""Errors that end a chunk or a partition early."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.contract.faults.fault import Fault, FaultKind
from airflow_provider_kpipe.contract.permissions import PAGE, forbidden

KnownFaults: TypeAlias = Mapping[int, Fault]
"""Faults by offset: a failed try has shown that these records cannot pass."""

# One record cannot be written: another record may well pass.
_RECORD_ERRORS = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._INVALID_ARG,
    }
)
# No record can be written to the topic, whatever the record contains.
_TOPIC_ERRORS = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError.TOPIC_AUTHORIZATION_FAILED}
)
_FORBIDDEN = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional_id",
}
# A producer that was fenced between two calls only reports that it is broken permanently: _FATAL.
_FENCED_ERRORS = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError._FATAL}
)
# Errors of user code for which no record is to blame: an interrupt, or a lack of memory, which may have leaked over all
# records before. The process ends then; a record that ends the next process, too, is found.
NO_RECORDS_ERRORS = (KeyboardInterrupt, GeneratorExit, MemoryError)
# No broker has answered.
_SILENCE = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._WAIT_COORD,
    }
)


def shown(error: BaseException) -> str:
    """Format an error of user code for people, even an error that cannot say its own message."""
    return f"{type(error).__name__}: {Fault.of(error, '', 'segment').message}"


def is_record_error(error: KafkaError) -> bool:
    return error.code() in _RECORD_ERRORS and not error.fatal()


def is_too_large(fault: Fault) -> bool:
    """Tell whether the broker or the client rejected a record for its size."""
    return _has_code(fault, KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE)


def is_untimely(fault: Fault) -> bool:
    """Tell whether the broker rejected a record for its timestamp."""
    return _has_code(fault, KafkaError.INVALID_TIMESTAMP)


def _has_code(fault: Fault, *codes: int) -> bool:
    # A failed chunk passes its fault on as text, in which the client names the code of its error like this.
    return fault.message.startswith(tuple(f"KafkaError{{code={KafkaError(code).name()}," for code in codes))


def stop_if_unwritable(topic: str | None, own_topic: str, error: KafkaError, source_offset: int | None = None) -> None:
    """Stop the partition if the pipeline's own topic cannot be written to.

    For a topic that a segment has chosen, the record may be at fault instead.
    """
    if topic == own_topic and error.code() in _TOPIC_ERRORS:
        raise PartitionHaltedError(
            f"topic {topic!r} cannot be written to ({error.str()}): see that it is there, and that the connection's "
            f"user may write to it (see {PAGE}), then run again",
            source_offset,
        )


@contextmanager
def needing(**names: str) -> Iterator[None]:
    """Stop the partition if the call in the block lacks permission for a `topic`, a `group` or a `transactional_id`.

    Stop it, too, if the call exceeds a limit of the broker.
    """
    try:
        yield
    except KafkaException as failure:
        stop_if_forbidden(failure.args[0], **names)
        _stop_if_too_much(failure.args[0])
        raise


def stop_if_forbidden(error: KafkaError, **names: str) -> None:
    """Stop the partition over a missing permission: neither a retry nor blaming a record would help.

    The client does not report the resource, so `names` has its name.
    """
    kind = _FORBIDDEN.get(error.code())
    if kind in names:
        raise PartitionHaltedError(forbidden(kind.replace("_", " "), names[kind], error.str()))


def is_silence(failure: BaseException | None) -> bool:
    """Tell whether the failure, or one behind it, is that no broker has answered."""
    if isinstance(failure, KafkaException):
        return failure.args[0].code() in _SILENCE
    return failure is not None and (isinstance(failure, NoAnswerError) or is_silence(failure.__cause__))


def reason_of(failure: Exception) -> str:
    """Return the reason why a partition cannot continue, as users see it."""
    if isinstance(failure, KafkaException) and is_silence(failure):
        return (
            f"the Kafka cluster does not answer ({failure.args[0].str()}): see that its brokers run and that workers "
            "can reach them, then run again"
        )
    if isinstance(failure, KafkaException) and failure.args[0].code() == KafkaError.CONCURRENT_TRANSACTIONS:
        return (
            f"the last transaction does not come to its end ({failure.args[0].str()}), as where a topic that it has "
            "written to lacks replicas in sync: see to the replicas of the topics that are written, then run again"
        )
    return str(failure)


def _stop_if_too_much(error: KafkaError) -> None:
    if error.code() == KafkaError.OFFSET_METADATA_TOO_LARGE:
        raise PartitionHaltedError(
            f"the broker takes less beside an offset than the plan counted on ({error.str()}): make its "
            "offset.metadata.max.bytes what it was, or let the connection's user describe the cluster's settings, so "
            "that a new plan knows it"
        )
    if error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        raise PartitionHaltedError(
            f"the broker does not let a transaction last so long ({error.str()}): lower transaction_seconds or "
            "chunk_seconds of the pipeline, or raise the broker's transaction.max.timeout.ms"
        )


def may_be_fenced(error: KafkaError) -> bool:
    return error.code() in _FENCED_ERRORS


class ChunkFailedError(Exception):
    """Failure of a chunk, which is redone from the stored offset with the faults that are known now."""

    def __init__(self, reason: str, faults: Mapping[int, Fault] | None = None) -> None:
        super().__init__(reason)
        self.faults = dict(faults or {})


class ChunkDroppedError(ChunkFailedError):
    """Loss of a chunk's records with their transaction, which knows why; the broker rejected none of them."""


class NoAnswerError(ChunkFailedError):
    """Lack of an answer from the broker in time: the outcome of the chunk is unknown."""


class OutlivedError(Exception):
    """Record that was alone in its chunk, and outlasted the transaction; the chunk failed."""

    def __init__(self, seconds: float, longest: float, failure: Exception) -> None:
        super().__init__(
            f"alone in its chunk, the record took {seconds:.0f} s, and a transaction lasts {longest:g} s ({failure}): "
            "raise transaction_seconds of the pipeline, or make its segments quicker"
        )


class ChunkRejectedError(Exception):
    """End of a chunk that takes no more records: the broker has rejected one, and the worker asks for the reason."""


class PartitionHaltedError(Exception):
    """End of a partition that cannot continue. The records before `next_offset` are terminal and get stored."""

    def __init__(self, reason: str, next_offset: int | None = None) -> None:
        super().__init__(reason)
        self.next_offset = next_offset


class PipelineHaltedError(PartitionHaltedError):
    """End of a partition that cannot continue; all other partitions of the run should stop, too."""


class BudgetExceededError(Exception):
    """Excess of faulted records in the run: the chunk is given up, and every partition stops."""


class UnwritableRecordError(Exception):
    """Record that cannot be written as it is; the cause says why."""

    def fault(self, kind: FaultKind) -> Fault:
        return Fault.of(self.__cause__ or self, "kafka", kind)


class WorkerDiedError(Exception):
    """Death of the process that handled a record."""


class SegmentTimeoutError(BaseException):
    """Segment that has taken too long. A segment that catches every Exception lets this one through."""


class RetryLaterError(Exception):
    """Record that is tried again in a later chunk; the records behind it wait for it."""


class SegmentError(Exception):
    """Error that user code raised, which is the cause of this one."""

    @property
    def segment(self) -> str:
        path: str = self.args[0]
        return path
