"""Segments for Avro with a schema registry: bytes become dicts, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_kpipe.formats.registry import Reader, Writer

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient


class Read(Reader):
    """Segment that reads the value from Avro, by the schema that it was written with."""

    def serde(self, client: SchemaRegistryClient) -> Any:
        from confluent_kafka.schema_registry.avro import AvroDeserializer

        return AvroDeserializer(client, conf={"subject.name.strategy.type": self.subject_names})


class Write(Writer):
    """Segment that writes the value to Avro, by its subject's newest schema or the `schema` of a derived class."""

    schema: ClassVar[str | None] = None

    def serde(self, client: SchemaRegistryClient) -> Any:
        from confluent_kafka.schema_registry.avro import AvroSerializer

        return AvroSerializer(client, self.schema, conf=self.settings(has_schema=self.schema is not None))


class ReadKey(Read):
    """Segment that reads the key from Avro."""

    part = "key"


class WriteKey(Write):
    """Segment that writes the key to Avro."""

    part = "key"
