"""The base classes of all formats with a schema registry. They separate a record's faults from the registry's.

This module imports the registry's client only when a segment opens: a machine that only parses DAGs works without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from airflow_provider_kpipe.record import Record
from airflow_provider_kpipe.segments import SegmentContext, StopPartitionError

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

Part: TypeAlias = Literal["value", "key"]
SubjectNames: TypeAlias = Literal["TOPIC", "RECORD", "TOPIC_RECORD"]

# By default, the client waits for an answer forever.
TIMEOUT_SECONDS = 10.0
_NUMBERS = frozenset(
    {"timeout", "cache.capacity", "cache.latest.ttl.sec", "max.retries", "retries.wait.ms", "retries.max.wait.ms"}
)
# The codes of a registry for a schema that it does not have; the client's in-memory registry uses them too.
_UNKNOWN_SCHEMA = frozenset({40400, 40401, 40402, 40403})


class RegistrySegment(ABC):
    """A segment over one part of a record, with one of confluent-kafka's serializers behind it."""

    part: ClassVar[Part] = "value"
    subject_names: ClassVar[SubjectNames] = "TOPIC"
    """How subjects are named: `<topic>-value`, the name of the schema's record, or `<topic>-<name of the record>`."""

    end: ClassVar[Literal["source", "destination"]]

    def open(self, context: SegmentContext) -> None:
        self._topic = context.topic if self.end == "source" else context.destination_topic
        settings = context.source_registry if self.end == "source" else context.destination_registry
        with needs_the_extra():
            from confluent_kafka.schema_registry import SchemaRegistryClient
            from confluent_kafka.schema_registry.error import OAuthTokenError, SchemaRegistryError
            from confluent_kafka.serialization import MessageField, SerializationContext
            from httpx2 import TransportError

            self._registry_errors = (SchemaRegistryError, OAuthTokenError, TransportError)
            self._context, self._field = SerializationContext, MessageField(self.part)
            self._client = SchemaRegistryClient.new_client(client_settings(settings, self.end))
            self._call = self.serde(self._client)

    @abstractmethod
    def serde(self, client: SchemaRegistryClient) -> Any:
        """Make the serializer or deserializer."""

    def close(self) -> None:
        self._client.close()


class Reader(RegistrySegment):
    """Reader of bytes with a schema's id in front. It needs no settings: the id names the schema of the bytes."""

    end = "source"

    @property
    def _id_header(self) -> str:
        return f"__{self.part}_schema_id"

    def process(self, record: Record) -> Record:
        data = getattr(record, self.part)
        if data is None:
            return record
        try:
            read = self._call(data, self._context(self._topic, self._field, record.headers))
        except self._registry_errors as error:
            if _is_unknown_schema(error) or _is_no_id(_id_in_header(record.headers, self._id_header) or data):
                raise
            raise StopPartitionError(_not_answered(error, self.end)) from error
        setattr(record, self.part, read)
        # A header may hold the id instead; it belongs to the bytes, which are replaced now.
        name = self._id_header
        if any(header[0] == name for header in record.headers):
            record.headers = [header for header in record.headers if header[0] != name]
        return record


class Writer(RegistrySegment):
    """Writer of bytes with a schema's id in front, for the topic that the record goes to."""

    end = "destination"

    auto_register: ClassVar[bool] = False
    """True lets the segment register its schema; otherwise the schema has to be registered already."""

    def process(self, record: Record) -> Record:
        found = getattr(record, self.part)
        if found is None:
            return record
        topic = record.topic or self._topic
        try:
            setattr(record, self.part, self._call(found, self._context(topic, self._field)))
        except self._registry_errors as error:
            if _is_unknown_schema(error):
                raise StopPartitionError(self._not_registered(topic, error)) from error
            raise StopPartitionError(_not_answered(error, self.end)) from error
        return record

    def settings(self, has_schema: bool) -> dict[str, Any]:
        """Return the serializer's own settings."""
        if not has_schema and (self.auto_register or self.subject_names != "TOPIC"):
            name = "auto_register" if self.auto_register else "subject_names"
            raise ValueError(f"{type(self).__name__} sets {name}, which needs a schema: set `schema` too")
        return {
            "auto.register.schemas": self.auto_register,
            "use.latest.version": not has_schema,
            "subject.name.strategy.type": self.subject_names,
        }

    def _not_registered(self, topic: str, error: Exception) -> str:
        subject = f"subject '{topic}-{self.part}'" if self.subject_names == "TOPIC" else "the record's subject"
        return (
            f"the destination's schema registry does not have the schema of {subject} ({error}): register it, "
            f"or let {type(self).__name__} do so with `auto_register = True` and a schema"
        )


def client_settings(settings: Mapping[str, str], end: str) -> dict[str, Any]:
    """Return the settings as the client takes them, with numbers as numbers."""
    if not settings.get("url"):
        raise ValueError(
            f'no schema registry is named: add "schema.registry.url" to the extra of the Airflow connection of the '
            f"pipeline's {end}"
        )
    return {"timeout": TIMEOUT_SECONDS} | {name: _typed(name, value) for name, value in settings.items()}


def _typed(name: str, value: str) -> str | float:
    if name not in _NUMBERS:
        return value
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"schema.registry.{name}={value!r} is not a number") from None


def _is_unknown_schema(error: Exception) -> bool:
    return getattr(error, "error_code", None) in _UNKNOWN_SCHEMA


def _id_in_header(headers: Any, name: str) -> bytes | None:
    """Return the first header of this name. If there is one, the client ignores an id in front of the payload."""
    found: bytes | None = next((value for header, value in headers if header == name), None)
    return found


def _is_no_id(data: bytes) -> bool:
    """Tell whether the number in the place of the id is too large for one: a registry may answer anything then."""
    return data[0] == 0 and data[1] > 127


def _not_answered(error: Exception, end: str) -> str:
    return (
        f"the {end}'s schema registry did not do what it was asked ({type(error).__name__}: {error}): see that it is "
        f"up, and look at schema.registry.* in the extra of the {end}'s Airflow connection"
    )


@contextmanager
def needs_the_extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{error}: run pip install 'confluent-kafka[avro,json,protobuf,schemaregistry]' on the executors"
        ) from error
