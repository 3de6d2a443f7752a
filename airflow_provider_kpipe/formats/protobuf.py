"""Segments for Protobuf with a schema registry: bytes become messages, and back.

Derive a class from one of these, and name the message in it: `message_type = Order`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_kpipe.formats.registry import Reader, RegistrySegment, Writer

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient


class Read(Reader):
    """Segment that reads the value from Protobuf."""

    message_type: ClassVar[Any] = None

    def serde(self, client: SchemaRegistryClient) -> Any:
        from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer

        conf = {"subject.name.strategy.type": self.subject_names}
        return ProtobufDeserializer(_message_type(self), conf, client)


class Write(Writer):
    """Segment that writes the value to Protobuf, by its subject's newest schema, or with `auto_register` by its own."""

    message_type: ClassVar[Any] = None

    def serde(self, client: SchemaRegistryClient) -> Any:
        from confluent_kafka.schema_registry.protobuf import ProtobufSerializer

        conf = {**self.settings(has_schema=True), "use.latest.version": not self.auto_register}
        return ProtobufSerializer(_message_type(self), client, conf)


class ReadKey(Read):
    """Segment that reads the key from Protobuf."""

    part = "key"


class WriteKey(Write):
    """Segment that writes the key to Protobuf."""

    part = "key"


def _message_type(segment: RegistrySegment) -> Any:
    message_type = getattr(segment, "message_type", None)
    if message_type is None:
        raise ValueError(
            f"{type(segment).__name__} has no message: derive a class from it with `message_type = Order`, the class "
            "that protoc made, and name that one in the pipeline's segments"
        )
    return message_type
