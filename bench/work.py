"""The works to measure: their records, the task for each record, and the expected outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

Mode: TypeAlias = Literal["warm", "cold"]

SAMPLE_EVERY = 1_000


class BenchError(RuntimeError):
    """A benchmark that cannot continue; the message says why."""


@dataclass(frozen=True, slots=True)
class Message:
    """One record as it is sent, and as it has to arrive."""

    key: bytes
    value: bytes
    headers: list[tuple[str, str | bytes | None]]


@dataclass(frozen=True, slots=True)
class Records:
    """A source topic with the ids 0 to `count` - 1. Works with the same records read the same topic."""

    count: int
    partitions: int = 4
    padding: int = 130
    """Bytes to pad the value with; without padding it has about 55."""
    poison_percent: int = 0
    heavy_percent: int = 0
    """The share of records in partition 0; by default the partitions take records in turn."""

    @property
    def topic(self) -> str:
        marks = f"{self.padding}b-{self.poison_percent}p-{self.heavy_percent}h"
        return f"source-{self.partitions}x{self.count}-{marks}"

    def message(self, record_id: int) -> Message:
        """Make a record with the id as key, one header, and JSON as value: cut off in the middle if it is poison."""
        text = '{"id": %d, "customer": "c%d", "amount": %d, "pad": "%s"}'
        value = (text % (record_id, record_id % 1000, record_id % 997, "x" * self.padding)).encode()
        return Message(
            key=b"%d" % record_id,
            value=value[: len(value) // 2] if self.is_poison(record_id) else value,
            headers=[("trace", b"t%d" % record_id)],
        )

    def is_poison(self, record_id: int) -> bool:
        return record_id * 7 % 100 < self.poison_percent

    def partition_of(self, record_id: int) -> int:
        if self.heavy_percent and record_id * 7 % 100 < self.heavy_percent:
            return 0
        if self.heavy_percent:
            return 1 + record_id % (self.partitions - 1)
        return record_id % self.partitions


def as_it_came(value: bytes) -> bytes:
    return value


def everything(record_id: int) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Work:
    """A task over records for each contestant, and the expected output."""

    name: str
    about: str
    records: Records
    warm: Sequence[str]
    """The names of the contestants that take part in a running session."""
    cold: Sequence[str] = ()
    """The names of the contestants that take part with a whole submit."""
    task: str = "copy"
    """The task of the peers: a name in `bench/tasks/`, or copy."""
    pipeline: Mapping[str, Any] = field(default_factory=dict)
    """The arguments of kpipe's KafkaPipeline, beside the topics and the delivery."""
    spark_source: Mapping[str, str] = field(default_factory=dict)
    """More options for Spark's source."""
    outcome: Callable[[bytes], bytes] = as_it_came
    """Returns the expected value of an output record for a source value."""
    passes: Callable[[int], bool] = everything
    """Returns true for the ids of records that have to arrive; poison never does."""
    quick_records: int = 0
    """The number of records in a quick run; 0 leaves the work out of it."""

    def expects(self, record_id: int) -> bool:
        return self.passes(record_id) and not self.records.is_poison(record_id)

    def wanted(self) -> bytes:
        """Return a byte for each id: 1 if the record has to arrive, else 0."""
        if self.passes is everything and not self.records.poison_percent:
            return bytes([1]) * self.records.count
        return bytes(map(self.expects, range(self.records.count)))

    def expected(self, record_id: int) -> Message:
        sent = self.records.message(record_id)
        return replace(sent, value=self.outcome(sent.value))

    def with_records(self, count: int) -> Work:
        return replace(self, records=replace(self.records, count=count))


@dataclass(frozen=True, slots=True)
class Job:
    """A work to do once, with an output topic that is empty so far."""

    work: Work
    bootstrap_servers: str
    output: str

    @property
    def dead_letters(self) -> str:
        """The topic for poison."""
        return f"{self.output}-dead"

    @property
    def written_topics(self) -> tuple[str, ...]:
        return (self.output, self.dead_letters) if self.work.records.poison_percent else (self.output,)
