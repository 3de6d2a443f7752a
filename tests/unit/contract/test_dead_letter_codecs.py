from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from letters import ANY_TEXTS, TEXTS, TRIES

from airflow_provider_kpipe.contract.dead_letter_codecs import (
    COUNT,
    INT,
    JAVA_TIMESTAMP_KIND,
    KIND,
    LONG,
    NUMBER,
    RETRIES,
    RETRIES_BYTES,
    TEXT,
    TIMESTAMP_KIND,
    Codec,
    write_stage,
)
from airflow_provider_kpipe.contract.faults import FailedTry


@pytest.mark.parametrize(
    ("codec", "detail", "raw"),
    [
        (TEXT, "größe", "größe".encode()),
        (NUMBER, -1, b"-1"),
        (COUNT, 3, b"3"),
        (INT, 3, b"\x00\x00\x00\x03"),
        (LONG, 1_700_000_000_000, b"\x00\x00\x01\x8b\xcf\xe5\x68\x00"),
        (LONG, -1, b"\xff" * 8),
        (KIND, "segment", b"segment"),
        (TIMESTAMP_KIND, "create_time", b"create_time"),
        (JAVA_TIMESTAMP_KIND, "create_time", b"CreateTime"),
        (JAVA_TIMESTAMP_KIND, "log_append_time", b"LogAppendTime"),
        (JAVA_TIMESTAMP_KIND, "unknown", b"NoTimestampType"),
        (
            RETRIES,
            (FailedTry(1, "OSError", "größer", 0.5),),
            '[{"attempt": 1, "exception_class": "OSError", "message": "größer", "delay_seconds": 0.5}]'.encode(),
        ),
    ],
)
def test_a_detail_becomes_bytes_and_comes_back(codec: Codec, detail: Any, raw: bytes) -> None:
    assert codec.write(detail) == raw
    assert codec.read(raw) == detail


@given(text=TEXTS)
def test_any_text_that_utf_8_encodes_comes_back(text: str) -> None:
    assert TEXT.read(TEXT.write(text)) == text


@given(text=ANY_TEXTS, raw=st.binary())
def test_no_text_and_no_bytes_are_too_strange(text: str, raw: bytes) -> None:
    assert isinstance(TEXT.write(text), bytes)
    assert isinstance(TEXT.read(raw), str)


@pytest.mark.parametrize(
    ("codec", "raw"),
    [
        (NUMBER, b"three"),
        (NUMBER, b""),
        (NUMBER, b"\xff"),
        (COUNT, b"0"),
        (COUNT, b"-4"),
        (INT, b"3"),
        (LONG, b"\x00\x00\x00\x03"),
        (KIND, b"weather"),
        (KIND, b"\xff"),
        (TIMESTAMP_KIND, b"CreateTime"),
        (JAVA_TIMESTAMP_KIND, b"create_time"),
        (RETRIES, b"{}"),
        (RETRIES, b'[{"attempt": 1}]'),
        (RETRIES, b"\xff"),
        (RETRIES, b"[" * 100_000),
    ],
)
def test_bytes_that_mean_nothing_are_refused(codec: Codec, raw: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        codec.read(raw)


@given(tries=st.lists(TRIES, max_size=3).map(tuple), times=st.integers(0, 50))
def test_of_many_retries_the_latest_that_fit_are_written(tries: tuple[FailedTry, ...], times: int) -> None:
    many = tries * times
    raw = RETRIES.write(many)
    kept = RETRIES.read(raw)
    assert len(raw) <= RETRIES_BYTES
    assert kept == many[len(many) - len(kept) :]


def test_a_retry_that_no_utf_8_encodes_is_written_all_the_same() -> None:
    assert RETRIES.read(RETRIES.write((FailedTry(1, "E", "\ud800", 0.0),)))[0].message == "?"


@pytest.mark.parametrize(
    ("kind", "stage"),
    [("source", b"KAFKA_CONSUME"), ("segment", b"TRANSFORMATION"), ("destination", b"KAFKA_PRODUCE")],
)
def test_each_kind_of_fault_has_a_stage_of_connect(kind: str, stage: bytes) -> None:
    assert write_stage(kind) == stage
