from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.formats.json import read, read_key, write, write_key
from airflow_provider_kpipe.record import Record
from kpipe_engine.processing.segment_chain import find_segment

MakeRecord = Callable[..., Record]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner | st.none(), max_size=5) | st.dictionaries(TEXTS, inner | st.none(), max_size=5),
)


class Parts:
    """As much of a record as these segments touch."""

    def __init__(self, value: Any) -> None:
        self.value = self.key = value


@given(VALUES)
def test_a_written_value_is_read_again(value: Any) -> None:
    parts: Any = Parts(value)
    write(parts)
    assert json.loads(parts.value) == value
    assert read(parts).value == value
    assert read_key(write_key(parts)).key == value


@pytest.mark.parametrize(
    ("value", "written"),
    [({"a": [1, 2.5, None], "é": "ü"}, '{"a":[1,2.5,null],"é":"ü"}'), ("text", '"text"'), (False, "false"), ([], "[]")],
)
def test_it_writes_compact_utf_8(record: MakeRecord, value: Any, written: str) -> None:
    assert write(record(value)).value == written.encode()
    assert write_key(record(key=value)).key == written.encode()


def test_only_the_one_part_is_touched(record: MakeRecord) -> None:
    headers = [("a", b"\xff"), ("b", None)]
    assert (made := read(record(b"1", headers=headers))).value == 1
    assert (made.key, made.headers, made.timestamp) == (b"k", headers, 1_700_000_000_000)
    assert (made := read_key(record(b"1", key=b"[2]"))).key == [2]
    assert made.value == b"1"


@pytest.mark.parametrize("segment", [read, write])
def test_a_tombstone_stays_one(record: MakeRecord, segment: Any) -> None:
    assert segment(record(None)).value is None


@pytest.mark.parametrize("segment", [read_key, write_key])
def test_no_key_stays_none(record: MakeRecord, segment: Any) -> None:
    assert segment(record(b"v", key=None)).key is None


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (b'{"a": 1,\n "b" 2}', r"line 2 column 6 \(char 14\)"),
        (b"", r"line 1 column 1 \(char 0\)"),
        (b"[1] 2", r"Extra data: line 1 column 5 \(char 4\)"),
        (b'"\xff"', "can't decode byte 0xff in position 1"),
        (b"[NaN]", "NaN is not valid JSON"),
        (b"-Infinity", "-Infinity is not valid JSON"),
        (b"[" * 100_000, "recursion"),
    ],
    ids=["syntax", "empty", "more", "bytes", "nan", "infinity", "deep"],
)
def test_broken_json_is_a_fault_with_its_reason(record: MakeRecord, broken: bytes, told: str) -> None:
    for segment, parts in ((read, {"value": broken}), (read_key, {"value": b"", "key": broken})):
        with pytest.raises((ValueError, RecursionError), match=told):
            segment(record(**parts))


def test_reading_a_value_twice_is_a_fault(record: MakeRecord) -> None:
    with pytest.raises(TypeError, match="dict found"):
        read(record({"a": 1}))


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (math.nan, "not JSON compliant"),
        ({"a": math.inf}, "not JSON compliant"),
        ({"day": date(2026, 1, 31)}, "Object of type date is not JSON serializable"),
        (b"bytes", "Object of type bytes is not JSON serializable"),
        ("\ud800", "surrogates not allowed"),
        (CIRCLE, "recursion"),
    ],
    ids=["nan", "infinity", "date", "bytes", "surrogate", "circle"],
)
def test_a_value_that_is_not_json_is_a_fault(record: MakeRecord, value: Any, told: str) -> None:
    with pytest.raises((ValueError, TypeError, RecursionError), match=told):
        write(record(value))
    with pytest.raises((ValueError, TypeError, RecursionError), match=told):
        write_key(record(b"", key=value))


@pytest.mark.parametrize("name", ["read", "write", "read_key", "write_key"])
def test_they_are_found_by_import_path(name: str) -> None:
    assert callable(find_segment(f"airflow_provider_kpipe.formats.json:{name}"))
