from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_kpipe.record import Origin, Record, RecordMetadata, SourceMessage

MakeMessage = Callable[..., SourceMessage]


def test_a_record_is_what_was_read(message: MakeMessage) -> None:
    headers = [("a", b"1"), ("a", None), ("b", b"\xff\x00")]
    record = Record(message(5, b"value", headers=headers), Origin("run"))
    assert (record.key, record.value, record.timestamp) == (b"k", b"value", 1_700_000_000_000)
    assert record.headers == headers
    assert (record.topic, record.partition) == (None, None)


def test_a_record_without_key_value_and_headers(message: MakeMessage) -> None:
    record = Record(message(0, None, key=None), Origin("run"))
    assert (record.key, record.value, record.headers) == (None, None, [])


def test_metadata_says_where_a_record_comes_from_and_under_which_lease(message: MakeMessage) -> None:
    record = Record(message(5, leader_epoch=7), Origin("dag/run/plan"))
    assert record.metadata == RecordMetadata(
        topic="orders",
        partition=3,
        offset=5,
        timestamp=1_700_000_000_000,
        timestamp_kind="create_time",
        leader_epoch=7,
        run_key="dag/run/plan",
        lease_id="kafka:orders:3",
        partition_key="orders:3",
        correlation_id="orders-3-5",
    )


@pytest.mark.parametrize(("kind", "name"), [(0, "unknown"), (1, "create_time"), (2, "log_append_time")])
def test_the_kind_of_a_timestamp_is_named(message: MakeMessage, kind: int, name: str) -> None:
    assert Record(message(timestamp=(kind, 5)), Origin("run")).metadata.timestamp_kind == name


def test_metadata_is_the_sources_whatever_a_segment_changes(message: MakeMessage) -> None:
    record = Record(message(5), Origin("run"))
    record.topic, record.partition, record.timestamp = "elsewhere", 9, 1
    assert (record.metadata.topic, record.metadata.partition, record.metadata.offset) == ("orders", 3, 5)
    assert record.metadata.timestamp == 1_700_000_000_000


@pytest.mark.parametrize(
    "changes",
    [{}, {"value": None}, {"key": b"other", "topic": "elsewhere", "partition": 0}, {"headers": [("x", b"y")]}],
    ids=repr,
)
def test_a_copy_has_the_same_parts_except_those_changed(message: MakeMessage, changes: dict[str, Any]) -> None:
    record = Record(message(5, headers=[("a", b"1")]), Origin("run"))
    twin = record.copy(**changes)
    for name in ("key", "value", "headers", "timestamp", "topic", "partition"):
        assert getattr(twin, name) == changes.get(name, getattr(record, name))
    assert twin.metadata == record.metadata


def test_a_copy_has_headers_of_its_own(message: MakeMessage) -> None:
    record = Record(message(headers=[("a", b"1")]), Origin("run"))
    record.copy().headers.append(("b", b"2"))
    assert record.headers == [("a", b"1")]


def test_a_record_has_headers_of_its_own_so_that_a_dead_letter_gets_the_original_ones(message: MakeMessage) -> None:
    source = message(headers=[("a", b"1")])
    Record(source, Origin("run")).headers.append(("b", b"2"))
    assert source.headers() == [("a", b"1")]


def test_a_part_that_records_do_not_have_cannot_be_set(message: MakeMessage) -> None:
    record: Any = Record(message(), Origin("run"))
    with pytest.raises(AttributeError):
        record.copy(header=[])
    with pytest.raises(AttributeError):
        record.offset = 5


def test_a_record_shows_where_it_is_and_not_what_is_in_it(message: MakeMessage) -> None:
    assert repr(Record(message(5, b"private"), Origin("run"))) == "<Record orders[3]@5 key=b'k'>"
