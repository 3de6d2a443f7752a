"""What can end a chunk or a partition before its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.contract.faults.fault import Fault, FaultKind
from airflow_provider_kpipe.contract.permissions import PAGE, forbidden

KnownFaults: TypeAlias = Mapping[int, Fault]
"""By offset: records that are known, from a failed try, not to pass."""

# The record itself cannot be written: another record may well pass.
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
# No record of a topic can be written, whatever is in it.
_TOPIC_ERRORS = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError.TOPIC_AUTHORIZATION_FAILED}
)
_FORBIDDEN = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional_id",
}
# A producer that was fenced between two calls says no more than that it is broken for good: _FATAL.
_FENCED_ERRORS = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError._FATAL}
)
# What user code raises and no record is to blame for: somebody interrupts, or the process has no memory left, which may
# have leaked over all records before. The process ends then, and a record that does that to the next one too is found.
NO_RECORDS_ERRORS = (KeyboardInterrupt, GeneratorExit, MemoryError)
# Nobody has answered.
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
    """Any error of user code, for people; also one that cannot say its own message."""
    return f"{type(error).__name__}: {Fault.of(error, '', 'segment').message}"


def is_record_error(error: KafkaError) -> bool:
    return error.code() in _RECORD_ERRORS and not error.fatal()


def is_too_large(fault: Fault) -> bool:
    """Whether the broker or the client refused a record for its size."""
    return _has_code(fault, KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE)


def is_untimely(fault: Fault) -> bool:
    """Whether the broker refused a record for its timestamp."""
    return _has_code(fault, KafkaError.INVALID_TIMESTAMP)


def _has_code(fault: Fault, *codes: int) -> bool:
    # A fault comes out of a chunk that failed as text, in which the client names the code of its error like this.
    return fault.message.startswith(tuple(f"KafkaError{{code={KafkaError(code).name()}," for code in codes))


def stop_if_unwritable(topic: str | None, own_topic: str, error: KafkaError, source_offset: int | None = None) -> None:
    """A record may be at fault for a topic that a segment has chosen for it, and never for the pipeline's own."""
    if topic == own_topic and error.code() in _TOPIC_ERRORS:
        raise PartitionHaltedError(
            f"topic {topic!r} cannot be written to ({error.str()}): see that it is there, and that the connection's "
            f"user may write to it ({PAGE}), then run again",
            source_offset,
        )


@contextmanager
def needing(**names: str) -> Iterator[None]:
    """A call that needs the permission to use a `topic`, a `group` or a `transactional_id`."""
    try:
        yield
    except KafkaException as failure:
        stop_if_forbidden(failure.args[0], **names)
        _stop_if_too_much(failure.args[0])
        raise


def stop_if_forbidden(error: KafkaError, **names: str) -> None:
    """Trying again helps as little as blaming a record. The client does not say what it was about."""
    kind = _FORBIDDEN.get(error.code())
    if kind in names:
        raise PartitionHaltedError(forbidden(kind.replace("_", " "), names[kind], error.str()))


def is_silence(failure: BaseException | None) -> bool:
    """Tell whether nobody has answered: that is the failure, or what lies behind it."""
    if isinstance(failure, KafkaException):
        return failure.args[0].code() in _SILENCE
    return failure is not None and (isinstance(failure, NoAnswerError) or is_silence(failure.__cause__))


def reason_of(failure: Exception) -> str:
    """Why a partition cannot go on, as it is shown."""
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
    """The chunk came to nothing and is redone from the stored offset, with what is known now."""

    def __init__(self, reason: str, faults: Mapping[int, Fault] | None = None) -> None:
        super().__init__(reason)
        self.faults = dict(faults or {})


class ChunkDroppedError(ChunkFailedError):
    """None of the chunk's records was refused: they were dropped with their transaction, which knows why."""


class NoAnswerError(ChunkFailedError):
    """The broker has not answered in time: nobody knows what has become of the chunk."""


class OutlivedError(Exception):
    """A record that was alone in its chunk took longer than a transaction lasts, and the chunk came to nothing."""

    def __init__(self, seconds: float, longest: float, failure: Exception) -> None:
        super().__init__(
            f"alone in its chunk, the record took {seconds:.0f} s, and a transaction lasts {longest:g} s ({failure}): "
            "raise transaction_seconds of the pipeline, or make its segments quicker"
        )


class ChunkRejectedError(Exception):
    """The chunk takes no more: the broker has refused something of it, and is about to be asked what."""


class PartitionHaltedError(Exception):
    """The partition cannot go on. What lies before `next_offset` is terminal and gets stored."""

    def __init__(self, reason: str, next_offset: int | None = None) -> None:
        super().__init__(reason)
        self.next_offset = next_offset


class PipelineHaltedError(PartitionHaltedError):
    """The partition cannot go on, and no other partition of the run should."""


class BudgetExceededError(Exception):
    """Too many records of the run have faulted: the chunk is given up, and no partition goes on."""


class UnwritableRecordError(Exception):
    """The record cannot be written as it is; the cause says why."""

    def fault(self, kind: FaultKind) -> Fault:
        return Fault.of(self.__cause__ or self, "kafka", kind)


class WorkerDiedError(Exception):
    """The process that handled a record has died over it."""


class SegmentTimeoutError(BaseException):
    """A segment has taken too long. Segments that catch every Exception do not catch it."""


class RetryLaterError(Exception):
    """The record is tried again in a later chunk, and nothing behind it goes before it."""


class SegmentError(Exception):
    """User code raised; the cause is what it raised."""

    @property
    def segment(self) -> str:
        path: str = self.args[0]
        return path
