from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination
from airflow_provider_kpipe.record import Origin, Record, SourceMessage
from kpipe_engine.errors import UnwritableRecordError
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing.backpressure import Admission
from kpipe_engine.writing.destination import Destination
from kpipe_engine.writing.producer_session import ProducerSession

MakeMessage = Callable[..., SourceMessage]
Copy = Callable[[Destination, SourceMessage], Any]

TOO_LARGE = KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
COPIES: dict[str, Copy] = {
    "many": lambda destination, message: destination.copy_while_taken([message]),
    "one": lambda destination, message: destination.copy(message),
    "through segments": lambda destination, message: destination.write(Record(message, Origin("run")), message),
}
copies = pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)


def session_of(settings: dict[str, Any]) -> ProducerSession:
    nobody: Any = None
    return ProducerSession(settings, "out", Admission(nobody, nobody, StopSignal(), lambda: False))


def destination(session: Any, **declared: Any) -> Destination:
    return Destination(KafkaDestination("out", **declared), session)


@copies
@pytest.mark.parametrize(
    "headers", [None, [("a", b"1"), ("a", None), ("b", b"\xff")]], ids=["no headers", "repeated and null headers"]
)
def test_a_record_is_written_as_it_was_read(
    copy: Copy, session: Any, producer: Any, message: MakeMessage, headers: Any
) -> None:
    copy(destination(session), message(5, b"\x00", key=None, headers=headers))
    (taken,) = producer.taken
    assert (taken["topic"], taken["key"], taken["value"]) == ("out", None, b"\x00")
    assert (taken["headers"] or None) == headers


@copies
@pytest.mark.parametrize(("keep", "partition"), [(False, -1), (True, 3)])
def test_the_partition_is_kept_where_it_was_said(
    copy: Copy, session: Any, producer: Any, message: MakeMessage, keep: bool, partition: int
) -> None:
    copy(destination(session, keep_partition=keep), message())
    assert producer.taken[0]["partition"] == partition


@copies
@pytest.mark.parametrize(("keep", "timestamp"), [(True, 1_700_000_000_000), (False, 0)])
def test_the_timestamp_is_kept_where_it_was_said(
    copy: Copy, session: Any, producer: Any, message: MakeMessage, keep: bool, timestamp: int
) -> None:
    copy(destination(session, keep_timestamp=keep), message())
    assert producer.taken[0]["timestamp"] == timestamp


@pytest.mark.parametrize("keep_partition", [False, True])
def test_a_segment_may_choose_topic_partition_key_and_timestamp(
    session: Any, producer: Any, message: MakeMessage, keep_partition: bool
) -> None:
    source = message(5)
    changed = Record(source, Origin("run")).copy(topic="elsewhere", partition=0, key=b"new", value=None, timestamp=7)
    destination(session, keep_partition=keep_partition).write(changed, source)
    taken = producer.taken[0]
    assert (taken["topic"], taken["partition"], taken["key"], taken["value"]) == ("elsewhere", 0, b"new", None)
    assert taken["timestamp"] == 7


def test_copying_many_stops_at_a_full_queue_and_says_how_far_it_came(
    session: Any, producer: Any, message: MakeMessage
) -> None:
    producer.full = 1
    messages = [message(each) for each in range(3)]
    assert destination(session).copy_while_taken(messages) == 0
    assert destination(session).copy_while_taken(messages) == 3
    assert producer.polled == []


def test_copying_many_stops_in_front_of_the_first_record_that_is_not_taken(
    session: Any, producer: Any, message: MakeMessage
) -> None:
    producer.refusals[b"huge"] = TOO_LARGE
    messages = [message(0, b"a"), message(1, b"b"), message(2, b"huge"), message(3, b"c")]
    assert destination(session).copy_while_taken(messages) == 2
    assert [taken["value"] for taken in producer.taken] == [b"a", b"b"]


def test_records_are_not_copied_many_at_a_time_while_refusals_are_traced(
    session: Any, producer: Any, message: MakeMessage
) -> None:
    session.renew(isolates=True)
    assert destination(session).copy_while_taken([message(0), message(1)]) == 0
    assert producer.taken == []


one_by_one = pytest.mark.parametrize("copy", [COPIES["one"], COPIES["through segments"]], ids=["one", "segments"])


@one_by_one
def test_a_full_queue_is_waited_out_and_the_record_is_not_lost(
    copy: Copy, session: Any, producer: Any, message: MakeMessage
) -> None:
    producer.full = 4
    copy(destination(session), message(5, b"v"))
    assert [taken["value"] for taken in producer.taken] == [b"v"]
    # Where records go by themselves already, the first refusal is not waited out but looked at.
    assert len(producer.polled) in (3, 4)


@one_by_one
def test_a_record_that_does_not_fit_into_an_empty_queue_is_at_fault(
    copy: Copy, session: Any, producer: Any, message: MakeMessage
) -> None:
    producer.full, producer.is_empty = 1_000, True
    with pytest.raises(UnwritableRecordError) as refusal:
        copy(destination(session), message(5, b"v"))
    assert "raise queue.buffering.max.kbytes" in refusal.value.fault("destination").message
    assert producer.taken == []


@one_by_one
def test_acknowledgements_are_asked_for_under_the_offset_of_the_source(
    copy: Copy, session: Any, producer: Any, message: MakeMessage
) -> None:
    session.renew(isolates=True)
    copy(destination(session), message(5))
    assert producer.taken[0]["record"] == (5, "destination")


@one_by_one
@pytest.mark.parametrize(
    "refusal",
    [
        TOO_LARGE,
        KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION)),
        TypeError("x"),
        ValueError("x"),
        OverflowError("x"),
    ],
    ids=repr,
)
def test_an_error_of_a_record_makes_it_unwritable_and_is_the_cause(
    copy: Copy, session: Any, producer: Any, message: MakeMessage, refusal: Exception
) -> None:
    producer.refusals[b"v"] = refusal
    with pytest.raises(UnwritableRecordError) as unwritable:
        copy(destination(session), message(5))
    assert unwritable.value.__cause__ is refusal


@one_by_one
@pytest.mark.parametrize(
    "error",
    [
        KafkaError(KafkaError._TRANSPORT),
        KafkaError(KafkaError._FENCED),
        KafkaError(KafkaError._STATE),
        KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "fatal", fatal=True),
    ],
    ids=["transport", "fenced", "state", "fatal"],
)
def test_an_error_of_the_producer_is_no_fault_of_the_record(
    copy: Copy, session: Any, producer: Any, message: MakeMessage, error: KafkaError
) -> None:
    producer.refusals[b"v"] = KafkaException(error)
    with pytest.raises(KafkaException):
        copy(destination(session), message(5))


@pytest.fixture(scope="module")
def real() -> Iterator[ProducerSession]:
    """A session with confluent-kafka's own producer, which needs no broker to refuse what cannot be written."""
    made = session_of({"bootstrap.servers": "", "message.max.bytes": 1_000, "log_level": 0})
    yield made
    made.close()


UNWRITABLE: list[dict[str, Any]] = [
    {"value": {"a": 1}},
    {"value": 5},
    {"value": "\ud800"},
    {"value": b"x" * 2_000},
    {"value": bytearray(b"x")},
    {"key": 5},
    {"topic": 5},
    {"topic": "a\0b"},
    {"partition": "0"},
    {"partition": 10**12},
    {"timestamp": None},
    {"timestamp": 1.5},
    {"headers": "abc"},
    {"headers": [("a", 5)]},
    {"headers": [("a",)]},
    {"headers": [None]},
    # Of these, the client would make the names "b'a'", "None" and "a".
    {"headers": [(b"a", b"1")]},
    {"headers": [(None, b"1")]},
    {"headers": [("a\0b", b"1")]},
    {"headers": {"a\0b": b"1"}},
]


@pytest.mark.parametrize("parts", UNWRITABLE, ids=lambda parts: repr(parts)[:40])
def test_any_result_of_a_segment_is_written_or_a_fault_of_its_record(
    real: Any, message: MakeMessage, parts: Any
) -> None:
    read = message(5)
    with pytest.raises(UnwritableRecordError):
        destination(real).write(Record(read, Origin("run")).copy(**parts), read)


def test_a_timestamp_that_no_record_can_have_is_found_in_a_copy_too(real: Any) -> None:
    """A dead letter may say so of the record inside."""
    read = SimpleNamespace(
        offset=lambda: 5, key=lambda: b"", value=lambda: b"", headers=list, timestamp=lambda: (1, 10**23)
    )
    assert destination(real).copy_while_taken([read]) == 0
    with pytest.raises(UnwritableRecordError):
        destination(real).copy(read)


CHILD = """
from confluent_kafka import Message
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination
from kpipe_engine.writing.backpressure import Admission
from kpipe_engine.writing.destination import Destination
from kpipe_engine.writing.producer_session import ProducerSession
from kpipe_engine.errors import UnwritableRecordError
from kpipe_engine.stop_signal import StopSignal
from airflow_provider_kpipe.record import Origin, Record

admission = Admission(None, None, StopSignal(), lambda: False)
session = ProducerSession({"bootstrap.servers": "", "log_level": 0}, "out", admission)
message = Message(topic="orders", partition=3, offset=5, value=b"v", timestamp=(1, 1_700_000_000_000))
record = Record(message, Origin("run")).copy(headers=HEADERS)
try:
    Destination(KafkaDestination("out"), session).write(record, message)
except UnwritableRecordError:
    print("a fault of that record")
"""


@pytest.mark.parametrize("headers", ['[("\\ud800", b"")]', '{"\\ud800": b""}'], ids=["list", "dict"])
def test_a_header_name_that_is_no_utf_8_does_not_take_the_worker_down(headers: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = [sys.executable, "-c", CHILD.replace("HEADERS", headers)]
    ended = subprocess.run(child, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout.strip()) == (0, "a fault of that record")
