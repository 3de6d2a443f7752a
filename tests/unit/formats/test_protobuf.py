from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.serialization import SerializationError
from formats_kit import Order, ReadProtobuf, RegisterProtobuf, WriteProtobuf

from airflow_provider_kpipe.formats import protobuf

Opened = Callable[[type], Any]
MakeRecord = Callable[..., Any]

# The magic byte, the id, and the way to the message: one step, to the second of the file.
FRAME = b"\x00\x00\x00\x00\x01" + b"\x02\x02"


class RegisterKey(protobuf.WriteKey):
    message_type = Order
    auto_register = True


class ReadKey(protobuf.ReadKey):
    message_type = Order


@pytest.fixture
def registered(registry: SchemaRegistryClient, opened: Opened, record: MakeRecord) -> SchemaRegistryClient:
    opened(RegisterProtobuf).process(record(Order(id=1)))
    return registry


@pytest.mark.parametrize("segment", [RegisterProtobuf, WriteProtobuf], ids=["its own schema", "the newest"])
def test_it_writes_the_magic_byte_the_id_the_message_and_protobuf(
    opened: Opened, record: MakeRecord, registered: Any, segment: type
) -> None:
    order = Order(id=41, seen=True)
    written = opened(segment).process(record(order))
    assert written.value == FRAME + order.SerializeToString()
    assert opened(ReadProtobuf).process(written).value == order


def test_it_may_register_its_schema(registered: SchemaRegistryClient) -> None:
    assert registered.get_subjects() == ["out-value"]


def test_keys_have_a_subject_of_their_own(opened: Opened, record: MakeRecord, registry: SchemaRegistryClient) -> None:
    written = opened(RegisterKey).process(record(b"v", key=Order(id=41)))
    assert registry.get_subjects() == ["out-key"]
    assert written.key[:7] == FRAME
    assert opened(ReadKey).process(written).key == Order(id=41)


@pytest.mark.parametrize("segment", [ReadProtobuf, WriteProtobuf])
def test_a_tombstone_stays_one(opened: Opened, record: MakeRecord, registry: Any, segment: type) -> None:
    assert opened(segment).process(record(None)).value is None


@pytest.mark.parametrize("segment", [protobuf.Read, protobuf.Write, protobuf.ReadKey, protobuf.WriteKey])
def test_a_message_has_to_be_named(opened: Opened, registry: Any, segment: type) -> None:
    with pytest.raises(ValueError, match=f"{segment.__name__} has no message: derive a class from it with `message_ty"):
        opened(segment)


def test_a_message_of_another_type_is_the_records_fault(opened: Opened, record: MakeRecord, registered: Any) -> None:
    with pytest.raises(ValueError, match="message must be of type"):
        opened(WriteProtobuf).process(record({"id": 41}))
    with pytest.raises(SerializationError):
        opened(ReadProtobuf).process(record(FRAME + b"\xff\xff"))
