"""The declaration of a pipeline by its user: source, segments, destination, dead letter, delivery."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from airflow_provider_kpipe.contract.documents import Document
from airflow_provider_kpipe.contract.kafka_names import is_reserved
from airflow_provider_kpipe.contract.pipeline.choices import check_choice
from airflow_provider_kpipe.contract.pipeline.kinds import check_kinds, listed
from airflow_provider_kpipe.contract.pipeline.policies import IMPORT_PATH, DeadLetterBudget, RetryPolicy, check_on_fault
from airflow_provider_kpipe.contract.pipeline.scaling import PartitionScaling

Delivery: TypeAlias = Literal["exactly_once", "at_least_once"]
IsolationLevel: TypeAlias = Literal["read_committed", "read_uncommitted"]
OnDataLoss: TypeAlias = Literal["stop_partition", "skip"]
DeadLetterDialect: TypeAlias = Literal["kpipe", "connect", "spring", "streams"]
DeadLetterFormat: TypeAlias = Literal["raw", "envelope"]
Compression: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Partitioner: TypeAlias = Literal[
    "random", "consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"
]

LONGEST_TOPIC = 249
_TOPIC = re.compile(rf"[A-Za-z0-9._-]{{1,{LONGEST_TOPIC}}}")
# The broker aborts a transaction after 15 minutes (transaction.max.timeout.ms); a chunk is one transaction.
LONGEST_CHUNK_SECONDS = 600
LONGEST_TRANSACTION_SECONDS = 840
# Waiting for the broker may take nearly as long again as reading.
TRANSACTION_PER_CHUNK = 1.4
# Kafka clients with full queues and their threads take about half of it.
LEAST_WORKER_MEMORY_MB = 512


class PipelineError(ValueError):
    """Mistake in the declaration of a pipeline, which cannot work."""


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """The topic that is read, and the Airflow connection to its cluster."""

    topic: str
    conn_id: str = "kafka_default"
    isolation_level: IsolationLevel = "read_committed"
    on_data_loss: OnDataLoss = "stop_partition"
    """The action if records of the range have left the topic before they were read, or cannot be decompressed."""
    correlation_header: str | None = None
    """The header that holds a record's correlation id; if it is missing, the id is made from the coordinates."""

    def __post_init__(self) -> None:
        check_topic(self.topic, "source")
        check_choice("KafkaSource.isolation_level", self.isolation_level, IsolationLevel, PipelineError)
        check_choice("KafkaSource.on_data_loss", self.on_data_loss, OnDataLoss, PipelineError)
        check_kinds(self, PipelineError)


@dataclass(frozen=True, slots=True)
class KafkaDestination:
    """The topic that is written. Without a connection of its own it is on the source's cluster."""

    topic: str
    conn_id: str | None = None
    keep_partition: bool = False
    keep_timestamp: bool = True
    # Places keys as Java producers do, so that both agree on the partition of a key.
    partitioner: Partitioner = "murmur2_random"
    compression: Compression = "none"
    copy_headers: bool = True
    drop_headers: Sequence[str] = ()
    """The names of headers that are not copied."""
    stamp_source: bool = False
    """Adds kpipe-source-topic, -partition and -offset, for readers who remove duplicates."""

    def __post_init__(self) -> None:
        check_topic(self.topic, "destination")
        object.__setattr__(
            self, "drop_headers", listed("drop_headers", self.drop_headers, "names of headers", PipelineError)
        )
        for name in self.drop_headers:
            if not isinstance(name, str):
                raise PipelineError(f"drop_headers has {name!r}, which is not a header name: use a text")
        check_choice("KafkaDestination.partitioner", self.partitioner, Partitioner, PipelineError)
        check_choice("KafkaDestination.compression", self.compression, Compression, PipelineError)
        check_kinds(self, PipelineError)


@dataclass(frozen=True, slots=True)
class KafkaDeadLetter:
    """The topic that takes the records which could not pass. It is on the destination's cluster."""

    topic: str
    dialect: DeadLetterDialect = "kpipe"
    """The header names for the fault: kpipe's, Kafka Connect's, spring-kafka's or Kafka Streams'."""
    format: DeadLetterFormat = "raw"
    """The record as it came, or one JSON document with the record and everything about its fault."""
    mapper: str | None = None
    """Import path of a function from a `DeadLetter` to key, value and headers, in place of dialect and format."""

    def __post_init__(self) -> None:
        check_topic(self.topic, "dead letter")
        check_choice("KafkaDeadLetter.dialect", self.dialect, DeadLetterDialect, PipelineError)
        check_choice("KafkaDeadLetter.format", self.format, DeadLetterFormat, PipelineError)
        if self.mapper is not None:
            self._check_mapper(self.mapper)
        check_kinds(self, PipelineError)

    def _check_mapper(self, path: str) -> None:
        if not isinstance(path, str) or not IMPORT_PATH.fullmatch(path):
            raise PipelineError(f"KafkaDeadLetter.mapper={path!r} is not an import path: use 'module:function'")
        for name, chosen, default in (("format", self.format, "raw"), ("dialect", self.dialect, "kpipe")):
            if chosen != default:
                raise PipelineError(
                    f"KafkaDeadLetter has mapper={path!r} and {name}={chosen!r}: the mapper makes key, value and "
                    f"headers itself, so nothing would read the {name}; leave one of the two out"
                )


@dataclass(frozen=True, slots=True)
class KafkaPipeline(Document):
    """A Kafka-to-Kafka pipeline. Segments are import paths, resolved on the executors."""

    SCHEMA_VERSION: ClassVar[int] = 1

    name: str
    source: KafkaSource
    destination: KafkaDestination
    segments: Sequence[str] = ()
    dead_letter: KafkaDeadLetter | None = None
    group_id: str | None = None
    delivery: Delivery = "exactly_once"
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    on_fault: str | None = None
    """dead_letter, skip, stop_partition, stop_pipeline, or the import path of a function that chooses one. By
    default dead_letter if there is a topic for it, and otherwise stop_partition."""
    max_dead_letters: int | None = None
    """One more dead letter than this stops the run; None is no limit."""
    max_dead_letter_ratio: float | None = 0.5
    """A larger share of faults, skipped ones too, among at least 100 records of a run stops it; None is no limit."""
    partitions: PartitionScaling = field(default_factory=PartitionScaling)
    chunk_records: int = 500_000
    chunk_seconds: float = 3.0
    transaction_seconds: float | None = None
    """Seconds after which the broker aborts an unfinished chunk. By default 60, and more if chunks are longer."""
    segment_timeout: float | None = None
    """Seconds that a segment may take over a record, or over a batch; None is no limit."""
    worker_memory_mb: int | None = 4_096
    """Megabytes that a worker process may take for its data; None is no limit."""

    def __post_init__(self) -> None:
        check_kinds(self, PipelineError)
        if is_reserved(self.group):
            raise PipelineError(
                f"group {self.group!r} is a name that kpipe makes itself, for what it stores beside a group: "
                "choose one without '.kpipe' at its end, '.kpipe.' and '.backfill.' in it"
            )
        object.__setattr__(self, "segments", listed("segments", self.segments, "import paths", PipelineError))
        for path in self.segments:
            if not isinstance(path, str) or not IMPORT_PATH.fullmatch(path):
                raise PipelineError(
                    f"segment {path!r} of pipeline {self.name!r} is not an import path: use 'module:name'"
                )
        check_choice("KafkaPipeline.delivery", self.delivery, Delivery, PipelineError)
        check_on_fault(self.on_fault, self.dead_letter is not None)
        DeadLetterBudget(self.max_dead_letters, self.max_dead_letter_ratio)
        self._check_topics()
        self._check_chunk()
        self._check_worker()
        if self.delivery == "exactly_once" and self.destination_conn_id != self.source.conn_id:
            raise PipelineError(
                f"pipeline {self.name!r} asks for exactly_once from connection {self.source.conn_id!r} to "
                f"{self.destination_conn_id!r}: a transaction covers one cluster only; "
                "use one connection for both, or delivery='at_least_once'"
            )

    @property
    def group(self) -> str:
        return self.group_id or self.name

    @property
    def owner(self) -> str:
        """Distinguishes this pipeline from others with its name or its group, beside each offset that it commits."""
        told = f"{self.name}\0{self.destination.topic}"
        return f"{self.name[:40]}#{hashlib.sha256(told.encode()).hexdigest()[:8]}"

    @property
    def fault_action(self) -> str:
        """The action, or the import path of the function that chooses it."""
        return self.on_fault or ("dead_letter" if self.dead_letter else "stop_partition")

    @property
    def budget(self) -> DeadLetterBudget:
        return DeadLetterBudget(self.max_dead_letters, self.max_dead_letter_ratio)

    @property
    def destination_conn_id(self) -> str:
        return self.destination.conn_id or self.source.conn_id

    @property
    def written_topics(self) -> tuple[str, ...]:
        return (self.destination.topic, *([self.dead_letter.topic] if self.dead_letter else []))

    @property
    def topic_roles(self) -> dict[str, str]:
        """The topics that have to exist before a run begins, by role."""
        dead_letter, events = self.dead_letter, self.partitions.events_topic
        return {
            "source": self.source.topic,
            "destination": self.destination.topic,
            **({"dead letter": dead_letter.topic} if dead_letter else {}),
            **({"events": events} if events else {}),
        }

    def _check_topics(self) -> None:
        if self.partitions.events_topic is not None:
            check_topic(self.partitions.events_topic, "events")
        roles: dict[str, str] = {}
        for role, topic in self.topic_roles.items():
            if role != "source" and topic == self.source.topic:
                raise PipelineError(
                    f"pipeline {self.name!r} reads {topic!r} and has it as {role} topic: "
                    "each run would read what the last one wrote; name another topic"
                )
            if topic in roles:
                raise PipelineError(
                    f"pipeline {self.name!r} has {topic!r} as {roles[topic]} and as {role} topic: "
                    "readers could not tell them apart; name another topic"
                )
            roles[topic] = role

    def _check_chunk(self) -> None:
        if type(self.chunk_records) is not int or self.chunk_records < 1:
            raise PipelineError(f"chunk_records={self.chunk_records!r}: a chunk has a whole number of records from 1")
        seconds = self.chunk_seconds
        if type(seconds) not in (int, float) or not 0 < seconds <= LONGEST_CHUNK_SECONDS:
            raise PipelineError(
                f"chunk_seconds={seconds!r}: choose between 0 and {LONGEST_CHUNK_SECONDS}; "
                "the broker aborts transactions of 15 minutes"
            )
        limit, least = self.transaction_seconds, seconds * TRANSACTION_PER_CHUNK
        if limit is not None and not (type(limit) in (int, float) and least <= limit <= LONGEST_TRANSACTION_SECONDS):
            raise PipelineError(
                f"transaction_seconds={limit!r}: choose between {least:g}, which is {TRANSACTION_PER_CHUNK:g} times "
                f"chunk_seconds, and {LONGEST_TRANSACTION_SECONDS}; the broker aborts transactions of 15 minutes"
            )

    def _check_worker(self) -> None:
        seconds = self.segment_timeout
        if seconds is not None and (type(seconds) not in (int, float) or not 0 < seconds <= LONGEST_CHUNK_SECONDS):
            raise PipelineError(
                f"segment_timeout={seconds!r}: choose between 0 and {LONGEST_CHUNK_SECONDS} seconds, or None for no "
                "limit"
            )
        memory = self.worker_memory_mb
        if memory is not None and (type(memory) is not int or memory < LEAST_WORKER_MEMORY_MB):
            raise PipelineError(
                f"worker_memory_mb={memory!r}: use a whole number of megabytes from {LEAST_WORKER_MEMORY_MB}, or None "
                "for no limit"
            )


def check_topic(topic: str, role: str) -> None:
    if not isinstance(topic, str) or not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise PipelineError(
            f"{role} topic {topic!r}: a topic has 1 to {LONGEST_TOPIC} of the characters a-z A-Z 0-9 . _ -"
        )


def check_pipeline(pipeline: object) -> None:
    """Raise PipelineError for an object that is not a pipeline: otherwise a task would fail only when it runs."""
    if not isinstance(pipeline, KafkaPipeline):
        raise PipelineError(f"pipeline={pipeline!r} is not a KafkaPipeline: declare one, and give it to all its tasks")
