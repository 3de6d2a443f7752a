from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.dead_letters.dead_letter import LARGEST_COUNT
from airflow_provider_kpipe.contract.dead_letters.header_codecs import (
    COUNT,
    JAVA_OFFSET,
    JAVA_PARTITION,
    JAVA_TIMESTAMP,
    JAVA_TIMESTAMP_KIND,
    KIND,
    OFFSET,
    PARTITION,
    RETRIES,
    RETRIES_BYTES,
    TEXT,
    TIMESTAMP,
    TIMESTAMP_KIND,
    Codec,
    write_stage,
)
from airflow_provider_kpipe.contract.faults.fault import FailedTry
from tests.kit.letters import ANY_TEXTS, TEXTS, TRIES


@pytest.mark.parametrize(
    ("codec", "detail", "raw"),
    [
        (TEXT, "größe", "größe".encode()),
        (TIMESTAMP, -1, b"-1"),
        (PARTITION, 2**31 - 1, b"2147483647"),
        (OFFSET, 2**63 - 1, b"9223372036854775807"),
        (COUNT, 3, b"3"),
        (JAVA_PARTITION, 3, b"\x00\x00\x00\x03"),
        (JAVA_TIMESTAMP, 1_700_000_000_000, b"\x00\x00\x01\x8b\xcf\xe5\x68\x00"),
        (JAVA_TIMESTAMP, -1, b"\xff" * 8),
        (JAVA_OFFSET, 5, b"\x00" * 7 + b"\x05"),
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
        (OFFSET, b"three"),
        (OFFSET, b""),
        (OFFSET, b"\xff"),
        (OFFSET, b"1_0"),
        (OFFSET, b" 1"),
        (OFFSET, "\u0663".encode()),
        (OFFSET, b"-1"),
        (OFFSET, str(2**63).encode()),
        (OFFSET, b"9" * 5_000),
        (PARTITION, b"-1"),
        (PARTITION, str(2**31).encode()),
        (TIMESTAMP, str(-(2**63) - 1).encode()),
        (COUNT, b"0"),
        (COUNT, b"000"),
        (COUNT, b"-4"),
        (COUNT, b"+4"),
        (COUNT, b"9" * 5_000 + b"x"),
        (JAVA_PARTITION, b"3"),
        (JAVA_PARTITION, b"\xff" * 4),
        (JAVA_OFFSET, b"\x00\x00\x00\x03"),
        (JAVA_OFFSET, b"\xff" * 8),
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


@pytest.mark.parametrize("raw", [b"2147483647", b"2147483648", b"9" * 4_300, b"9" * 5_000, b"0" * 5_000 + b"9" * 11])
def test_a_count_ends_at_the_largest_whatever_is_said(raw: bytes) -> None:
    assert COUNT.read(raw) == LARGEST_COUNT
    assert COUNT.read(b"0" * 5_000 + b"7") == 7


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
