"""Segments over read values, and writers with schemas of their own, found by import path as a user's are."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import Default
from google.protobuf.message_factory import GetMessageClass

from airflow_provider_kpipe.formats import avro, json_schema, protobuf

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "seen", "type": "boolean", "default": False}],
    }
)
JSON_SCHEMA = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "seen": {"type": "boolean"}},
        "required": ["id"],
    }
)


def _order_class() -> Any:
    """What protoc makes of `message Order { int64 id = 1; bool seen = 2; }`, the second message of its file."""
    order = DescriptorProto(name="Order")
    for number, (name, kind) in enumerate((("id", "TYPE_INT64"), ("seen", "TYPE_BOOL")), 1):
        order.field.add(
            name=name, number=number, type=FieldDescriptorProto.Type.Value(kind), label="LABEL_OPTIONAL", json_name=name
        )
    file = FileDescriptorProto(name="orders.proto", package="shop", syntax="proto3")
    file.message_type.extend([DescriptorProto(name="Customer"), order])
    Default().AddSerializedFile(file.SerializeToString())
    return GetMessageClass(Default().FindMessageTypeByName("shop.Order"))


Order = _order_class()


def saw(record: Any) -> Any:
    """A value that can be anything of the formats'."""
    if isinstance(record.value, dict):
        record.value = {**record.value, "seen": True}
    elif record.value is not None:
        record.value.seen = True
    return record


def says_where_from(record: Any) -> Any:
    """A header that names the file the segments came from."""
    record.headers.append(("from", str(avro.__file__).encode()))
    return record


class WriteAvro(avro.Write):
    schema = AVRO


class RegisterAvro(WriteAvro):
    auto_register = True


class RegisterAvroByRecord(RegisterAvro):
    subject_names = "RECORD"


class WriteAnything(avro.Write):
    auto_register = True


class WriteJsonSchema(json_schema.Write):
    schema = JSON_SCHEMA


class RegisterJsonSchema(WriteJsonSchema):
    auto_register = True


class ReadProtobuf(protobuf.Read):
    message_type = Order


class WriteProtobuf(protobuf.Write):
    message_type = Order


class RegisterProtobuf(WriteProtobuf):
    auto_register = True


def with_text(record: Any) -> Any:
    """A value that fits no schema of an order."""
    if record.value["id"] == 3:
        record.value = {"id": "three"}
    return record
