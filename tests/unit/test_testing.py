from __future__ import annotations

from airflow_provider_kpipe.testing import context_of, record_of


def test_a_record_is_as_if_it_had_been_read() -> None:
    headers = [("a", b"1"), ("a", None)]
    record = record_of(b"v", b"k", headers, timestamp=1_700_000_000_000, topic="orders", partition=3, offset=42)
    assert (record.key, record.value, record.headers, record.timestamp) == (b"k", b"v", headers, 1_700_000_000_000)
    assert (record.topic, record.partition) == (None, None)
    assert record.metadata.correlation_id == "orders-3-42"
    assert record.metadata.timestamp_kind == "create_time"


def test_of_a_record_only_its_value_has_to_be_said() -> None:
    tombstone = record_of(None)
    assert (tombstone.key, tombstone.value, tombstone.headers) == (None, None, [])


def test_a_context_counts() -> None:
    context = context_of("orders", 3)
    context.count("refunds")
    assert (context.topic, context.partition, context.counters) == ("orders", 3, {"refunds": 1})
