from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.dead_letters.dead_letter import (
    MESSAGE_BYTES,
    STACKTRACE_BYTES,
    Coordinates,
    DeadLetter,
    FirstFault,
)
from airflow_provider_kpipe.contract.dead_letters.dialects import redrive_headers
from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter
from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import (
    KafkaDeadLetter,
    KafkaDestination,
    KafkaPipeline,
    KafkaSource,
)
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.assignment.run_monitor import NoMonitor
from kpipe_engine.errors import PartitionHaltedError
from kpipe_engine.faults.dead_letter_topic import DeadLetterTopic, NoDeadLetters
from kpipe_engine.faults.fault_handler import FaultHandler
from kpipe_engine.wiring import choose_dead_letters
from tests.kit.plans import plan_of

MakeMessage = Callable[..., SourceMessage]

PLAN = plan_of(PartitionRange(3, 0, 100, None), group="orders-v2")
FAULT = Fault(
    component="orders_pipeline:parse",
    kind="segment",
    exception_class="ValueError",
    message="no amount",
    stacktrace="Traceback ...",
    attempts=2,
    occurred_at="2026-01-31T12:00:01.000+00:00",
)


def job(dead_letter: KafkaDeadLetter | None) -> Job:
    return Job(KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"), dead_letter=dead_letter), PLAN)


@pytest.fixture
def letters(session: Any) -> DeadLetterTopic:
    return DeadLetterTopic(KafkaDeadLetter("orders.dead"), PLAN, session)


def test_a_record_goes_as_it_came(letters: DeadLetterTopic, session: Any, producer: Any, message: MakeMessage) -> None:
    session.renew(isolates=True)
    letters.take(message(5, b"\x00\xff", key=b"\xfe"), FAULT)
    (taken,) = producer.taken
    assert (taken["topic"], taken["key"], taken["value"]) == ("orders.dead", b"\xfe", b"\x00\xff")
    assert taken["timestamp"] == 1_700_000_000_000
    assert taken["record"] == (5, "dead_letter")


def test_a_tombstone_stays_one(letters: DeadLetterTopic, producer: Any, message: MakeMessage) -> None:
    letters.take(message(5, None, key=None), FAULT)
    assert (producer.taken[0]["key"], producer.taken[0]["value"]) == (None, None)


def test_the_story_of_the_fault_is_in_the_headers(
    letters: DeadLetterTopic, producer: Any, message: MakeMessage
) -> None:
    letters.take(message(5), FAULT)
    headers = producer.taken[0]["headers"]
    assert read_dead_letter(b"k", b"v", headers) == DeadLetter(
        key=b"k",
        value=b"v",
        headers=(),
        source=Coordinates("orders", 3, 5, 1_700_000_000_000, "create_time"),
        fault=FAULT,
        pipeline="orders",
        group="orders-v2",
        run_key="dag/run/plan",
    )
    assert ("kpipe-dead-letter-attempt", b"1") in headers


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        ({}, "kpipe-fault-message"),
        ({"dialect": "connect"}, "__connect.errors.exception.message"),
        ({"dialect": "spring"}, "kafka_dlt-exception-message"),
        ({"dialect": "streams"}, "__streams.errors.message"),
    ],
    ids=str,
)
def test_the_fault_is_told_in_the_dialect_that_was_declared(
    session: Any, producer: Any, message: MakeMessage, declared: dict[str, Any], name: str
) -> None:
    DeadLetterTopic(KafkaDeadLetter("orders.dead", **declared), PLAN, session).take(message(5), FAULT)
    assert dict(producer.taken[0]["headers"])[name] == b"no amount"


@pytest.mark.parametrize(("pipeline", "attempt"), [("orders", 4), ("upstream", 1)])
def test_a_record_that_was_redriven_counts_on_in_its_own_pipeline_only(
    letters: DeadLetterTopic, producer: Any, message: MakeMessage, pipeline: str, attempt: int
) -> None:
    source = Coordinates("raw", 0, 9)
    first = FirstFault("raw", 0, 7, "KeyError", "no id", "2026-01-30T00:00:00.000+00:00")
    before = DeadLetter(b"k", b"v", (("a", b"1"),), source, FAULT, pipeline, "g", "r", attempt=3, first=first)
    letters.take(message(5, headers=[*before.headers, *redrive_headers(before)]), FAULT)
    written = producer.taken[0]["headers"]
    found = read_dead_letter(b"k", b"v", written)
    assert found
    assert (found.attempt, found.first) == (attempt, first if pipeline == "orders" else None)
    assert found.headers == before.headers


@pytest.mark.parametrize("dialect", ["kpipe", "connect", "spring", "streams"])
@pytest.mark.parametrize("form", ["raw", "envelope"])
def test_a_record_that_is_a_dead_letter_itself_is_counted_and_keeps_its_first_fault(
    session: Any, producer: Any, message: MakeMessage, dialect: Any, form: Any
) -> None:
    letters = DeadLetterTopic(KafkaDeadLetter("orders.dead", dialect, form), PLAN, session)
    letters.take(message(5, headers=[("a", b"1"), ("a", None)]), FAULT)
    for offset in (77, 78):
        last = producer.taken[-1]
        arrived = message(offset, last["value"], key=last["key"], headers=last["headers"], topic="orders.dead")
        letters.take(arrived, replace(FAULT, message="again"))

    sizes = [len(each["headers"]) for each in producer.taken]
    assert sizes[1] == sizes[2]
    third = read_dead_letter(*(producer.taken[2][part] for part in ("key", "value", "headers")))
    assert third
    assert (third.value, third.headers, third.attempt) == (b"v", (("a", b"1"), ("a", None)), 3)
    assert (third.source.topic, third.source.offset, third.fault.message) == ("orders.dead", 78, "again")
    assert third.first == FirstFault("orders", 3, 5, "ValueError", "no amount", FAULT.occurred_at)


def test_an_envelope_is_one_document(session: Any, producer: Any, message: MakeMessage) -> None:
    letters = DeadLetterTopic(KafkaDeadLetter("orders.dead", format="envelope"), PLAN, session)
    letters.take(message(5, b"\xff", key=None, headers=[("a", b"1")]), FAULT)
    (taken,) = producer.taken
    assert taken["key"] is None
    assert json.loads(taken["value"])["value"] == "/w=="
    assert "a" not in dict(taken["headers"])


@given(
    message_text=st.text().map(lambda text: text * 50),
    trace=st.text().map(lambda text: text * 500),
    form=st.sampled_from(["raw", "envelope"]),
    dialect=st.sampled_from(["kpipe", "connect", "spring", "streams"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_fault_takes_a_bounded_room_in_any_language(
    session: Any, producer: Any, message: MakeMessage, message_text: str, trace: str, form: Any, dialect: Any
) -> None:
    fault = replace(FAULT, message=message_text, stacktrace=trace)
    DeadLetterTopic(KafkaDeadLetter("orders.dead", dialect, form), PLAN, session).take(message(5), fault)
    headers = producer.taken[-1]["headers"]
    assert sum(len(name.encode()) + len(value) for name, value in headers) < MESSAGE_BYTES + STACKTRACE_BYTES + 2_000


@pytest.mark.parametrize(
    "original",
    [
        [("a", b"1")],
        [("b", b"1"), ("a", b"2"), ("b", b"3")],
        [("a", None), ("a", b""), ("a", b"\xff\x00")],
        [("kpipe-source-topic", b"raw"), ("kpipe-source-partition", b"0"), ("kpipe-source-offset", b"1")],
    ],
    ids=["one", "a repeated name", "null, empty and binary", "stamped by an earlier pipeline"],
)
def test_the_original_headers_come_first_and_untouched(
    letters: DeadLetterTopic, producer: Any, message: MakeMessage, original: list[tuple[str, bytes | None]]
) -> None:
    source = message(5, headers=list(original))
    letters.take(source, FAULT)
    headers = producer.taken[0]["headers"]
    assert headers[: len(original)] == original
    assert headers[len(original)] == ("kpipe-pipeline", b"orders")
    assert source.headers() == original


def test_a_message_that_is_no_utf_8_is_told_all_the_same(
    letters: DeadLetterTopic, producer: Any, message: MakeMessage
) -> None:
    letters.take(message(5), replace(FAULT, message="bad \ud800", stacktrace="trace \udfff"))
    headers = dict(producer.taken[0]["headers"])
    assert headers["kpipe-fault-message"] == b"bad ?"
    assert headers["kpipe-fault-stacktrace"] == b"trace ?"


def test_a_full_queue_is_waited_out(letters: DeadLetterTopic, producer: Any, message: MakeMessage) -> None:
    producer.full = 3
    letters.take(message(5), FAULT)
    assert len(producer.taken) == 1
    assert len(producer.polled) == 3


SIZE = "raise max.message.bytes of the dead-letter topic, and message.max.bytes in the connection"
TOPIC = (
    "see that the topic is there, that the connection's user may write to it "
    "(see the page 'Permissions' of kpipe's documentation), and that it is not compacted"
)
REFUSALS = [
    (KafkaError.MSG_SIZE_TOO_LARGE, SIZE),
    (KafkaError.INVALID_MSG_SIZE, SIZE),
    (KafkaError.UNKNOWN_TOPIC_OR_PART, TOPIC),
    (KafkaError.TOPIC_AUTHORIZATION_FAILED, TOPIC),
    (KafkaError.INVALID_RECORD, TOPIC),
]


@pytest.mark.parametrize(("code", "remedy"), REFUSALS, ids=str)
def test_a_dead_letter_that_cannot_be_written_stops_the_partition_in_front_of_its_record(
    letters: DeadLetterTopic, producer: Any, message: MakeMessage, code: int, remedy: str
) -> None:
    producer.refusals[b"refused"] = KafkaException(KafkaError(code, "no, MSG_SIZE_TOO_LARGE or not"))
    with pytest.raises(PartitionHaltedError) as stop:
        letters.take(message(5, b"refused"), FAULT)
    assert stop.value.next_offset == 5
    assert "offset 5: its dead letter cannot be written to topic 'orders.dead'" in str(stop.value)
    assert "no, MSG_SIZE_TOO_LARGE or not" in str(stop.value)
    assert str(stop.value).endswith(f": {remedy}, then run again")


@pytest.mark.parametrize(("code", "remedy"), REFUSALS, ids=str)
def test_a_dead_letter_that_the_broker_refused_stops_the_partition_when_it_comes_again(
    letters: DeadLetterTopic, producer: Any, message: MakeMessage, code: int, remedy: str
) -> None:
    fault = Fault.of(KafkaException(KafkaError(code, "it said no")), "kafka", "dead_letter")
    with pytest.raises(PartitionHaltedError, match=r"offset 5: its dead letter cannot be written.*it said no") as stop:
        letters.take(message(5), fault)
    assert stop.value.next_offset == 5
    assert str(stop.value).endswith(f": {remedy}, then run again")
    assert producer.taken == []


def test_a_cluster_that_fails_is_not_the_records_fault(
    letters: DeadLetterTopic, producer: Any, message: MakeMessage
) -> None:
    producer.refusals[b"v"] = KafkaException(KafkaError(KafkaError._TRANSPORT))
    with pytest.raises(KafkaException):
        letters.take(message(5), FAULT)


def test_without_a_dead_letter_topic_the_partition_stops_in_front_of_the_record(message: MakeMessage) -> None:
    with pytest.raises(PartitionHaltedError) as stop:
        NoDeadLetters().take(message(5), FAULT)
    assert stop.value.next_offset == 5
    assert "offset 5: segment orders_pipeline:parse: ValueError: no amount" in str(stop.value)
    assert "no dead-letter topic" in str(stop.value)


@pytest.mark.parametrize("action", ["dead_letter", "stop_partition", "stop_pipeline"])
def test_nobody_is_told_to_make_a_dead_letter_of_what_cannot_be_read(message: MakeMessage, action: str) -> None:
    policy = FaultHandler(lambda _fault, _message: action, NoDeadLetters(), NoMonitor())
    with pytest.raises(PartitionHaltedError) as stop:
        policy.take(message(5), replace(FAULT, kind="source"), Counts())
    assert stop.value.next_offset == 5
    assert str(stop.value) == (
        "offset 5: source orders_pipeline:parse: ValueError: no amount; no dead letter could hold what cannot be read: "
        "pass over it with on_fault='skip' or by hand, then run again"
    )


def test_the_pipeline_says_where_dead_letters_go(session: Any) -> None:
    assert isinstance(choose_dead_letters(job(None), session), NoDeadLetters)
    assert isinstance(choose_dead_letters(job(KafkaDeadLetter("orders.dead")), session), DeadLetterTopic)
