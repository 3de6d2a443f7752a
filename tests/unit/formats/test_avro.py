from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.serialization import SerializationError
from formats_kit import AVRO, RegisterAvro, RegisterAvroByRecord, WriteAvro

from airflow_provider_kpipe.formats import avro

Opened = Callable[[type], Any]
MakeRecord = Callable[..., Any]

# Zig-zag 41, then true.
ORDER_41 = b"\x52\x01"


def framed(schema_id: int, payload: bytes) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big") + payload


@pytest.fixture
def schema_id(registry: SchemaRegistryClient) -> int:
    """A schema registered for what is written, as the second of the registry."""
    registry.register_schema("other", Schema('"string"', "AVRO"))
    return int(registry.register_schema("out-value", Schema(AVRO, "AVRO")))


def test_it_reads_what_the_id_says(opened: Opened, record: MakeRecord, schema_id: int) -> None:
    read = opened(avro.Read).process(record(framed(schema_id, ORDER_41)))
    assert (read.value, read.key) == ({"id": 41, "seen": True}, b"k")


@pytest.mark.parametrize("segment", [WriteAvro, avro.Write], ids=["its own schema", "the newest of the subject"])
def test_it_writes_the_magic_byte_the_id_and_avro(
    opened: Opened, record: MakeRecord, schema_id: int, segment: type
) -> None:
    written = opened(segment).process(record({"id": 41, "seen": True}))
    assert written.value == framed(schema_id, ORDER_41)
    assert schema_id == 2


def test_the_subject_is_that_of_the_topic_a_record_goes_to(
    opened: Opened, record: MakeRecord, registry: SchemaRegistryClient
) -> None:
    writer = opened(RegisterAvro)
    writer.process(record({"id": 1}))
    writer.process(record({"id": 1}, topic="elsewhere"))
    assert sorted(registry.get_subjects()) == ["elsewhere-value", "out-value"]


def test_subjects_can_be_named_by_the_record(
    opened: Opened, record: MakeRecord, registry: SchemaRegistryClient
) -> None:
    opened(RegisterAvroByRecord).process(record({"id": 1}))
    assert registry.get_subjects() == ["Order"]


def test_keys_have_a_subject_of_their_own(opened: Opened, record: MakeRecord, registry: SchemaRegistryClient) -> None:
    registry.register_schema("out-key", Schema('"string"', "AVRO"))
    written = opened(avro.WriteKey).process(record(b"v", key="one"))
    assert (written.key, written.value) == (framed(1, b"\x06one"), b"v")
    assert opened(avro.ReadKey).process(written).key == "one"


@pytest.mark.parametrize("segment", [avro.Read, avro.Write, WriteAvro])
def test_a_tombstone_stays_one(opened: Opened, record: MakeRecord, registry: Any, segment: type) -> None:
    assert opened(segment).process(record(None)).value is None


@pytest.mark.parametrize("segment", [avro.ReadKey, avro.WriteKey])
def test_no_key_stays_none(opened: Opened, record: MakeRecord, registry: Any, segment: type) -> None:
    assert opened(segment).process(record(b"v", key=None)).key is None


@pytest.mark.parametrize("value", [{"id": "three"}, {}, 3, {"id": 2**70}], ids=repr)
def test_a_value_that_does_not_fit_its_schema_is_the_records_fault(
    opened: Opened, record: MakeRecord, schema_id: int, value: Any
) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError, OverflowError)):
        opened(WriteAvro).process(record(value))


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (b"\x00\x00", "data size is 2 bytes"),
        (b'{"id": 41}', "Invalid magic byte"),
        (b"\x00\x00\x00\x00\x02\xff", "index out of range"),
    ],
    ids=["short", "other", "cut"],
)
def test_an_unreadable_value_is_the_records_fault(
    opened: Opened, record: MakeRecord, schema_id: int, broken: bytes, told: str
) -> None:
    with pytest.raises((SerializationError, EOFError, IndexError), match=told):
        opened(avro.Read).process(record(broken))
