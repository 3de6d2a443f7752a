from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow_provider_kpipe.record import Origin, Record
from kpipe_engine.writing.output_rows import Row, in_source_order, record_of_row, row_of_message, row_of_record

MakeMessage = Callable[..., Any]
ORIGIN = Origin("run")


def test_a_message_becomes_a_row_with_its_own_headers(message: MakeMessage) -> None:
    given = message(5, b"v", key=b"k", timestamp=(1, 77))
    assert row_of_message(given) == (given, b"k", b"v", None, 77, None, None)


def test_a_row_becomes_the_record_of_its_message(message: MakeMessage) -> None:
    given = message(5, b"v", headers=[("a", b"1")])
    record = record_of_row(row_of_message(given), ORIGIN)
    assert (record.key, record.value, record.headers, record.message) == (b"k", b"v", [("a", b"1")], given)
    assert (record.timestamp, record.topic, record.partition) == (given.timestamp()[1], None, None)


def test_any_attribute_that_segments_set_survives_the_conversion(message: MakeMessage) -> None:
    given = message(5, headers=[("a", b"1")])
    row: Row = (given, None, {"parsed": 1}, [("b", None)], 5, "else", 2)
    record = record_of_row(row, ORIGIN)
    assert row_of_record(given, record) == row
    record.headers.append(("c", b"2"))
    assert row[3] == [("b", None)]


def test_headers_that_nobody_asked_for_are_left_to_the_message(message: MakeMessage) -> None:
    given = message(5, headers=[("a", b"1")])
    record = Record(given, ORIGIN)
    assert row_of_record(given, record)[3] is None


def test_a_record_that_was_held_back_keeps_its_headers_behind_a_later_message(message: MakeMessage) -> None:
    earlier, later = message(5, headers=[("a", b"1")]), message(6, headers=[("b", b"2")])
    assert row_of_record(later, Record(earlier, ORIGIN))[3] == [("a", b"1")]


def test_rows_of_all_portions_are_in_the_order_of_the_source(message: MakeMessage) -> None:
    first, second = row_of_message(message(1)), row_of_message(message(2))
    twin: Row = (*first[:2], b"twin", *first[3:])
    assert in_source_order([[second], [first], [twin]]) == [first, twin, second]
    assert in_source_order([[first, second], [twin]]) == [first, twin, second]
    assert in_source_order([[first, twin, second]]) == [first, twin, second]
    assert in_source_order([]) == []
