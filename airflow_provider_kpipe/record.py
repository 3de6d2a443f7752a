"""The record that segments take and return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from airflow_provider_kpipe.contract.dead_letters.dead_letter import TIMESTAMP_KINDS
from airflow_provider_kpipe.contract.kafka_names import lease_id_of

if TYPE_CHECKING:
    from airflow_provider_kpipe.contract.job import Job

Header: TypeAlias = tuple[str, str | bytes | None]


class SourceMessage(Protocol):
    """A message as it was consumed. Its coordinates are always there, unlike those of a message in general."""

    def topic(self) -> str: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> list[Header] | None: ...
    def timestamp(self) -> tuple[int, int]: ...
    def leader_epoch(self) -> int | None: ...


def coordinates(message: SourceMessage) -> tuple[str, int, int]:
    """Return the topic, partition and offset that a message was read from.

    For the record inside a dead letter, return the letter's: the record's own coordinates are those of its first
    source, and two letters could have the same.
    """
    read: SourceMessage = getattr(message, "original", message)
    return read.topic(), read.partition(), read.offset()


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """The origin of a record, and the run and lease that handle it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_kind: str
    leader_epoch: int | None
    run_key: str
    lease_id: str
    partition_key: str
    correlation_id: str


@dataclass(frozen=True, slots=True)
class Origin:
    """The properties that all records of a range have in common."""

    run_key: str
    correlation_header: str | None = None

    @classmethod
    def of(cls, job: Job) -> Origin:
        return cls(job.plan.run_key, job.pipeline.source.correlation_header)


class Record:
    """A pipeline record. Segments may change it in place or return another.

    `topic` and `partition` are the destination's; None lets the pipeline decide. The source's are in `metadata`.
    Headers are an ordered list of pairs: names may repeat, values may be binary or None.
    `airflow_provider_kpipe.testing` makes some for tests.
    """

    __slots__ = ("_origin", "key", "message", "own_headers", "partition", "timestamp", "topic", "value")

    def __init__(self, message: SourceMessage, origin: Origin) -> None:
        self.key: Any = message.key()
        self.value: Any = message.value()
        # None until a segment asks for the headers: most do not, and the original ones can be written as they are.
        self.own_headers: list[Header] | None = None
        self.timestamp: int = message.timestamp()[1]
        self.topic: str | None = None
        self.partition: int | None = None
        self.message = message
        self._origin = origin

    def copy(self, **changes: Any) -> Record:
        """Return another record from the same source record, with some of its parts changed."""
        twin = Record.__new__(Record)
        for name in Record.__slots__:
            setattr(twin, name, getattr(self, name))
        if self.own_headers is not None:
            twin.own_headers = list(self.own_headers)
        for name, value in changes.items():
            setattr(twin, name, value)
        return twin

    @property
    def headers(self) -> list[Header]:
        if self.own_headers is None:
            # A new list, as a segment may change it: a dead letter gets the headers as they were read.
            self.own_headers = list(self.message.headers() or ())
        return self.own_headers

    @headers.setter
    def headers(self, headers: list[Header] | None) -> None:
        self.own_headers = [] if headers is None else headers

    @property
    def metadata(self) -> RecordMetadata:
        # Made on demand: most segments never look at it, and the others should not pay for it.
        topic, partition, offset = coordinates(self.message)
        kind, timestamp = self.message.timestamp()
        return RecordMetadata(
            topic=topic,
            partition=partition,
            offset=offset,
            timestamp=timestamp,
            timestamp_kind=TIMESTAMP_KINDS[kind],
            leader_epoch=self.message.leader_epoch(),
            run_key=self._origin.run_key,
            lease_id=lease_id_of(topic, partition),
            partition_key=f"{topic}:{partition}",
            correlation_id=self._correlation_id() or f"{topic}-{partition}-{offset}",
        )

    def _correlation_id(self) -> str | None:
        wanted = self._origin.correlation_header
        for name, value in (self.message.headers() or ()) if wanted else ():
            if name == wanted and value:
                return value if isinstance(value, str) else value.decode(errors="replace")
        return None

    def __repr__(self) -> str:
        where = f"{self.message.topic()}[{self.message.partition()}]@{self.message.offset()}"
        return f"<Record {where} key={self.key!r}>"
