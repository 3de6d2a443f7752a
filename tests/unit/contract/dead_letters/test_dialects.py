from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from airflow_provider_kpipe.contract.dead_letters.dead_letter import DeadLetter, FirstFault
from airflow_provider_kpipe.contract.dead_letters.dialects import (
    DIALECTS,
    FAULT_HEADERS,
    Dialect,
    redrive_headers,
)
from airflow_provider_kpipe.contract.faults.fault import FailedTry
from tests.kit.letters import ANY_TEXTS, FAULT, LETTER, letters

every_dialect = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)

FOR_A_REDRIVE = [
    ("kpipe-pipeline", b"orders"),
    ("kpipe-source-topic", b"orders"),
    ("kpipe-source-partition", b"3"),
    ("kpipe-source-offset", b"5"),
    ("kpipe-dead-letter-attempt", b"1"),
]
FIRST = FirstFault("orders", 1, 2, "KeyError", "'id'", "2026-01-01T00:00:00.000+00:00")
OF_THE_FIRST = [
    ("kpipe-first-source-topic", b"orders"),
    ("kpipe-first-source-partition", b"1"),
    ("kpipe-first-source-offset", b"2"),
    ("kpipe-first-fault-exception", b"KeyError"),
    ("kpipe-first-fault-message", b"'id'"),
    ("kpipe-first-fault-occurred-at", b"2026-01-01T00:00:00.000+00:00"),
]


def test_our_own_words() -> None:
    assert DIALECTS["kpipe"].fault_headers(LETTER) == [
        ("kpipe-pipeline", b"orders"),
        ("kpipe-group", b"orders-v2"),
        ("kpipe-run-key", b"dag/run/plan"),
        ("kpipe-source-topic", b"orders"),
        ("kpipe-source-partition", b"3"),
        ("kpipe-source-offset", b"5"),
        ("kpipe-source-timestamp", b"1700000000000"),
        ("kpipe-source-timestamp-kind", b"create_time"),
        ("kpipe-fault-component", b"orders_pipeline:parse"),
        ("kpipe-fault-kind", b"segment"),
        ("kpipe-fault-exception", b"json.decoder.JSONDecodeError"),
        ("kpipe-fault-message", b"no amount"),
        ("kpipe-fault-stacktrace", b"Traceback ..."),
        ("kpipe-fault-attempts", b"1"),
        ("kpipe-fault-occurred-at", b"2026-01-31T12:00:01.000+00:00"),
        ("kpipe-dead-letter-attempt", b"1"),
        ("kpipe-dead-letter-headers", b"17"),
    ]


def test_the_words_of_kafka_connect() -> None:
    assert DIALECTS["connect"].fault_headers(LETTER) == [
        ("__connect.errors.topic", b"orders"),
        ("__connect.errors.partition", b"3"),
        ("__connect.errors.offset", b"5"),
        ("__connect.errors.connector.name", b"orders"),
        ("__connect.errors.class.name", b"orders_pipeline:parse"),
        ("__connect.errors.exception.class.name", b"json.decoder.JSONDecodeError"),
        ("__connect.errors.exception.message", b"no amount"),
        ("__connect.errors.exception.stacktrace", b"Traceback ..."),
        ("__connect.errors.task.id", b"3"),
        ("__connect.errors.stage", b"TRANSFORMATION"),
        ("kpipe-pipeline", b"orders"),
        ("kpipe-group", b"orders-v2"),
        ("kpipe-run-key", b"dag/run/plan"),
        ("kpipe-source-topic", b"orders"),
        ("kpipe-source-partition", b"3"),
        ("kpipe-source-offset", b"5"),
        ("kpipe-source-timestamp", b"1700000000000"),
        ("kpipe-source-timestamp-kind", b"create_time"),
        ("kpipe-fault-kind", b"segment"),
        ("kpipe-fault-attempts", b"1"),
        ("kpipe-fault-occurred-at", b"2026-01-31T12:00:01.000+00:00"),
        ("kpipe-dead-letter-attempt", b"1"),
        ("kpipe-dead-letter-headers", b"23"),
    ]


def test_the_words_of_spring_with_its_binary_numbers() -> None:
    assert DIALECTS["spring"].fault_headers(LETTER) == [
        ("kafka_dlt-original-topic", b"orders"),
        ("kafka_dlt-original-partition", b"\x00\x00\x00\x03"),
        ("kafka_dlt-original-offset", b"\x00\x00\x00\x00\x00\x00\x00\x05"),
        ("kafka_dlt-original-timestamp", b"\x00\x00\x01\x8b\xcf\xe5\x68\x00"),
        ("kafka_dlt-original-timestamp-type", b"CreateTime"),
        ("kafka_dlt-original-consumer-group", b"orders-v2"),
        ("kafka_dlt-exception-fqcn", b"json.decoder.JSONDecodeError"),
        ("kafka_dlt-exception-message", b"no amount"),
        ("kafka_dlt-exception-stacktrace", b"Traceback ..."),
        ("kpipe-pipeline", b"orders"),
        ("kpipe-run-key", b"dag/run/plan"),
        ("kpipe-source-topic", b"orders"),
        ("kpipe-source-partition", b"3"),
        ("kpipe-source-offset", b"5"),
        ("kpipe-fault-component", b"orders_pipeline:parse"),
        ("kpipe-fault-kind", b"segment"),
        ("kpipe-fault-attempts", b"1"),
        ("kpipe-fault-occurred-at", b"2026-01-31T12:00:01.000+00:00"),
        ("kpipe-dead-letter-attempt", b"1"),
        ("kpipe-dead-letter-headers", b"20"),
    ]


def test_the_words_of_kafka_streams() -> None:
    headers = DIALECTS["streams"].fault_headers(LETTER)
    assert headers[:6] == [
        ("__streams.errors.exception", b"json.decoder.JSONDecodeError"),
        ("__streams.errors.message", b"no amount"),
        ("__streams.errors.stacktrace", b"Traceback ..."),
        ("__streams.errors.topic", b"orders"),
        ("__streams.errors.partition", b"3"),
        ("__streams.errors.offset", b"5"),
    ]
    assert all(name.startswith("kpipe-") for name, _ in headers[6:])


@every_dialect
@pytest.mark.parametrize("letter", [LETTER, replace(LETTER, attempt=2, first=FIRST)], ids=["first", "again"])
def test_every_dialect_carries_the_headers_of_a_redrive(dialect: Dialect, letter: DeadLetter) -> None:
    *needed, (_, length) = redrive_headers(letter)
    assert length == str(len(needed) + 1).encode()
    assert set(needed) <= set(dialect.fault_headers(letter))
    assert set(needed) <= set(dialect.envelope_headers(letter))


def test_a_redrive_needs_source_pipeline_attempt_and_first_fault() -> None:
    assert redrive_headers(LETTER) == [*FOR_A_REDRIVE, ("kpipe-dead-letter-headers", b"6")]
    again = replace(LETTER, attempt=2, first=FIRST)
    assert redrive_headers(again) == [
        *FOR_A_REDRIVE[:-1],
        ("kpipe-dead-letter-attempt", b"2"),
        *OF_THE_FIRST,
        ("kpipe-dead-letter-headers", b"12"),
    ]


@every_dialect
def test_no_header_is_written_twice_and_all_are_known_again(dialect: Dialect) -> None:
    fault = replace(FAULT, retries=(FailedTry(1, "OSError", "", 0.0),))
    names = [name for name, _ in dialect.fault_headers(replace(LETTER, fault=fault, first=FIRST))]
    assert len(names) == len(set(names))
    assert set(names) <= FAULT_HEADERS


@every_dialect
def test_retries_are_told_where_there_are_some(dialect: Dialect) -> None:
    retried = replace(LETTER, fault=replace(FAULT, attempts=2, retries=(FailedTry(1, "OSError", "busy", 0.5),)))
    assert "kpipe-fault-retries" not in dict(dialect.fault_headers(LETTER))
    assert b"busy" in (dict(dialect.fault_headers(retried))["kpipe-fault-retries"] or b"")


@every_dialect
@given(letter=letters(ANY_TEXTS))
def test_any_letter_can_be_written(dialect: Dialect, letter: DeadLetter) -> None:
    assert all(isinstance(raw, bytes) for _, raw in dialect.fault_headers(letter))
