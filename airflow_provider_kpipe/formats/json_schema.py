"""Segments for JSON with a schema registry: bytes become Python values that fit their schema, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_kpipe.formats.registry import Reader, Writer

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient


class Read(Reader):
    """Segment that reads the value from JSON, and checks it against the schema that it was written with."""

    def serde(self, client: SchemaRegistryClient) -> Any:
        from confluent_kafka.schema_registry.json_schema import JSONDeserializer

        conf = {"subject.name.strategy.type": self.subject_names}
        return JSONDeserializer(None, schema_registry_client=client, conf=conf)


class Write(Writer):
    """Segment that writes the value to JSON, by its subject's newest schema or the `schema` of a derived class."""

    schema: ClassVar[str | None] = None

    def serde(self, client: SchemaRegistryClient) -> Any:
        from confluent_kafka.schema_registry.json_schema import JSONSerializer

        return JSONSerializer(self.schema, client, conf=self.settings(has_schema=self.schema is not None))


class ReadKey(Read):
    """Segment that reads the key from JSON."""

    part = "key"


class WriteKey(Write):
    """Segment that writes the key to JSON."""

    part = "key"
