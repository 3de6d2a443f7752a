from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.serialization import SerializationError
from formats_kit import JSON_SCHEMA, RegisterJsonSchema, WriteJsonSchema

from airflow_provider_kpipe.formats import json_schema

Opened = Callable[[type], Any]
MakeRecord = Callable[..., Any]

FRAME = b"\x00\x00\x00\x00\x01"


@pytest.fixture
def registered(registry: SchemaRegistryClient) -> SchemaRegistryClient:
    registry.register_schema("out-value", Schema(JSON_SCHEMA, "JSON"))
    return registry


@pytest.mark.parametrize("segment", [WriteJsonSchema, json_schema.Write], ids=["its own schema", "the newest"])
def test_it_writes_the_magic_byte_the_id_and_json(
    opened: Opened, record: MakeRecord, registered: Any, segment: type
) -> None:
    written = opened(segment).process(record({"id": 41, "seen": True}))
    assert written.value[:5] == FRAME
    assert json.loads(written.value[5:]) == {"id": 41, "seen": True}
    assert opened(json_schema.Read).process(written).value == {"id": 41, "seen": True}


def test_it_registers_its_schema_where_it_may(
    opened: Opened, record: MakeRecord, registry: SchemaRegistryClient
) -> None:
    opened(RegisterJsonSchema).process(record({"id": 1}))
    assert registry.get_latest_version("out-value").schema.schema_str == JSON_SCHEMA


def test_keys_have_a_subject_of_their_own(opened: Opened, record: MakeRecord, registry: SchemaRegistryClient) -> None:
    registry.register_schema("out-key", Schema('{"type": "string"}', "JSON"))
    written = opened(json_schema.WriteKey).process(record(b"v", key="one"))
    assert written.key == FRAME + b'"one"'
    assert opened(json_schema.ReadKey).process(written).key == "one"


@pytest.mark.parametrize("segment", [json_schema.Read, json_schema.Write, WriteJsonSchema])
def test_a_tombstone_stays_one(opened: Opened, record: MakeRecord, registry: Any, segment: type) -> None:
    assert opened(segment).process(record(None)).value is None


def test_a_value_that_does_not_fit_its_schema_is_the_records_fault(
    opened: Opened, record: MakeRecord, registered: Any
) -> None:
    with pytest.raises(SerializationError, match="'three' is not of type 'integer'"):
        opened(WriteJsonSchema).process(record({"id": "three"}))
    with pytest.raises(SerializationError, match="'id' is a required property"):
        opened(json_schema.Read).process(record(FRAME + b"{}"))


def test_broken_json_is_the_records_fault(opened: Opened, record: MakeRecord, registered: Any) -> None:
    with pytest.raises(ValueError, match="line 1 column 2"):
        opened(json_schema.Read).process(record(FRAME + b"{"))
