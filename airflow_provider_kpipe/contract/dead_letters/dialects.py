"""The headers of a dead letter and their details: under kpipe's own names, and those of Connect, Spring and Streams.

A detail is named by its path in `DeadLetter`. To add one, add a row to `_KPIPE`: every dialect then carries it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from airflow_provider_kpipe.contract.dead_letters.dead_letter import DeadLetter, Header, bounded_texts
from airflow_provider_kpipe.contract.dead_letters.header_codecs import (
    COUNT,
    JAVA_OFFSET,
    JAVA_PARTITION,
    JAVA_TIMESTAMP,
    JAVA_TIMESTAMP_KIND,
    KIND,
    OFFSET,
    PARTITION,
    RETRIES,
    TEXT,
    TIMESTAMP,
    TIMESTAMP_KIND,
    Codec,
    write_stage,
)
from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.pipeline.declaration import DeadLetterDialect

FORMAT_HEADER = "kpipe-dead-letter-format"
ENVELOPE_MARK: Header = (FORMAT_HEADER, b"envelope")
LENGTH_HEADER = "kpipe-dead-letter-headers"
"""Name of the last header of a block that kpipe has written: it says how many headers the block has."""
# An output may be stamped with these, too.
SOURCE_TOPIC_HEADER = "kpipe-source-topic"
SOURCE_PARTITION_HEADER = "kpipe-source-partition"
SOURCE_OFFSET_HEADER = "kpipe-source-offset"


class _Row(NamedTuple):
    """One detail, the header that carries it, and its codec."""

    detail: str
    header: str
    codec: Codec


_KPIPE = (
    _Row("pipeline", "kpipe-pipeline", TEXT),
    _Row("group", "kpipe-group", TEXT),
    _Row("run_key", "kpipe-run-key", TEXT),
    _Row("source.topic", SOURCE_TOPIC_HEADER, TEXT),
    _Row("source.partition", SOURCE_PARTITION_HEADER, PARTITION),
    _Row("source.offset", SOURCE_OFFSET_HEADER, OFFSET),
    _Row("source.timestamp", "kpipe-source-timestamp", TIMESTAMP),
    _Row("source.timestamp_kind", "kpipe-source-timestamp-kind", TIMESTAMP_KIND),
    _Row("fault.component", "kpipe-fault-component", TEXT),
    _Row("fault.kind", "kpipe-fault-kind", KIND),
    _Row("fault.exception_class", "kpipe-fault-exception", TEXT),
    _Row("fault.message", "kpipe-fault-message", TEXT),
    _Row("fault.stacktrace", "kpipe-fault-stacktrace", TEXT),
    _Row("fault.attempts", "kpipe-fault-attempts", COUNT),
    _Row("fault.occurred_at", "kpipe-fault-occurred-at", TEXT),
    _Row("attempt", "kpipe-dead-letter-attempt", COUNT),
)
# Not in every dead letter: a record that was tried once has no retries.
_RETRIES = _Row("fault.retries", "kpipe-fault-retries", RETRIES)
_FIRST = (
    _Row("first.topic", "kpipe-first-source-topic", TEXT),
    _Row("first.partition", "kpipe-first-source-partition", PARTITION),
    _Row("first.offset", "kpipe-first-source-offset", OFFSET),
    _Row("first.exception_class", "kpipe-first-fault-exception", TEXT),
    _Row("first.message", "kpipe-first-fault-message", TEXT),
    _Row("first.occurred_at", "kpipe-first-fault-occurred-at", TEXT),
)
_CONNECT = (
    _Row("source.topic", "__connect.errors.topic", TEXT),
    _Row("source.partition", "__connect.errors.partition", PARTITION),
    _Row("source.offset", "__connect.errors.offset", OFFSET),
    _Row("pipeline", "__connect.errors.connector.name", TEXT),
    _Row("fault.component", "__connect.errors.class.name", TEXT),
    _Row("fault.exception_class", "__connect.errors.exception.class.name", TEXT),
    _Row("fault.message", "__connect.errors.exception.message", TEXT),
    _Row("fault.stacktrace", "__connect.errors.exception.stacktrace", TEXT),
)
_SPRING = (
    _Row("source.topic", "kafka_dlt-original-topic", TEXT),
    _Row("source.partition", "kafka_dlt-original-partition", JAVA_PARTITION),
    _Row("source.offset", "kafka_dlt-original-offset", JAVA_OFFSET),
    _Row("source.timestamp", "kafka_dlt-original-timestamp", JAVA_TIMESTAMP),
    _Row("source.timestamp_kind", "kafka_dlt-original-timestamp-type", JAVA_TIMESTAMP_KIND),
    _Row("group", "kafka_dlt-original-consumer-group", TEXT),
    _Row("fault.exception_class", "kafka_dlt-exception-fqcn", TEXT),
    _Row("fault.message", "kafka_dlt-exception-message", TEXT),
    _Row("fault.stacktrace", "kafka_dlt-exception-stacktrace", TEXT),
)
_STREAMS = (
    _Row("fault.exception_class", "__streams.errors.exception", TEXT),
    _Row("fault.message", "__streams.errors.message", TEXT),
    _Row("fault.stacktrace", "__streams.errors.stacktrace", TEXT),
    _Row("source.topic", "__streams.errors.topic", TEXT),
    _Row("source.partition", "__streams.errors.partition", PARTITION),
    _Row("source.offset", "__streams.errors.offset", OFFSET),
)
# Written for readers of Connect's headers; kpipe's own headers beside them have the same details in full.
_CONNECT_TOO = (
    ("source.partition", "__connect.errors.task.id", PARTITION.write),
    ("fault.kind", "__connect.errors.stage", write_stage),
)
# Spring's listener wraps the exception: in its letters, this header has the class that readers look for.
_SPRING_CAUSE = _Row("fault.cause", "kafka_dlt-exception-cause-fqcn", TEXT)
_NEVER_WRITTEN = (
    "kafka_dlt-key-exception-fqcn",
    "kafka_dlt-key-exception-message",
    "kafka_dlt-key-exception-stacktrace",
)
# A redrive finds these under one name, whatever the dialect.
_ALWAYS = {"pipeline", "source.topic", "source.partition", "source.offset", "attempt"}

# The only details in which records differ that fail in one partition, in the same segment and with the same exception.
_OWN = ("source.offset", "source.timestamp", "fault.message", "fault.stacktrace", "fault.occurred_at")


class _Writer(NamedTuple):
    header: str
    write: Callable[[Any], bytes]
    detail_of: Callable[[DeadLetter], Any]
    own: int | None
    """The index in `_OWN` of the detail that it writes; None for other details."""


def _writer(detail: str, header: str, write: Callable[[Any], bytes]) -> _Writer:
    return _Writer(header, write, attrgetter(detail), _OWN.index(detail) if detail in _OWN else None)


def _writers(rows: Iterable[_Row]) -> tuple[_Writer, ...]:
    return tuple(_writer(detail, header, codec.write) for detail, header, codec in rows)


@dataclass(frozen=True, slots=True)
class Pattern:
    """The headers of one letter, with gaps for the details in which similar letters differ."""

    headers: list[Header]
    gaps: tuple[tuple[int, str, Callable[[Any], bytes], int], ...]
    """Of each gap, its position, the header's name and writer, and the index in `_OWN` of its detail."""

    def filled(self, offset: int, timestamp: int, fault: Fault) -> list[Header]:
        message, stacktrace = bounded_texts(fault)
        own = (offset, timestamp, message, stacktrace, fault.occurred_at)
        headers = self.headers.copy()
        for at, header, write, which in self.gaps:
            headers[at] = (header, write(own[which]))
        return headers


_RETRIES_WRITERS = _writers([_RETRIES])
_FIRST_WRITERS = _writers(_FIRST)
_REDRIVE_WRITERS = _writers(row for row in _KPIPE if row.detail in _ALWAYS)


@dataclass(frozen=True, slots=True)
class Dialect:
    """Dialect of a dead letter's headers: names of its own, then kpipe's names for the rest."""

    name: DeadLetterDialect
    named: tuple[_Writer, ...]
    rest: tuple[_Writer, ...]

    def fault_headers(self, letter: DeadLetter) -> list[Header]:
        """Return all headers about the fault, without the record's own headers in front of them."""
        headers = _written((*self.named, *self.rest), letter)
        if letter.fault.retries:
            headers += _written(_RETRIES_WRITERS, letter)
        return block_of(headers + first_headers(letter))

    def pattern(self, letter: DeadLetter) -> Pattern:
        """Return the pattern of letters like this one, which has neither retries nor a first fault."""
        writers = (*self.named, *self.rest)
        gaps = ((at, each.header, each.write, each.own) for at, each in enumerate(writers) if each.own is not None)
        return Pattern(block_of(_written(writers, letter)), tuple(gaps))

    def envelope_headers(self, letter: DeadLetter) -> list[Header]:
        """Return only the headers that readers of this dialect look for, and those that a redrive needs."""
        return block_of([*_written(self.named, letter), *_always(letter), ENVELOPE_MARK])


def redrive_headers(letter: DeadLetter) -> list[Header]:
    """Return the headers that every dead letter has, in any format, as a redrive needs them."""
    return block_of(_always(letter))


def block_of(headers: list[Header]) -> list[Header]:
    """Return the headers with their number behind them, by which a reader finds them again."""
    return [*headers, (LENGTH_HEADER, b"%d" % (len(headers) + 1))]


def _always(letter: DeadLetter) -> list[Header]:
    return _written(_REDRIVE_WRITERS, letter) + first_headers(letter)


def first_headers(letter: DeadLetter) -> list[Header]:
    return _written(_FIRST_WRITERS, letter) if letter.first else []


def _written(writers: Iterable[_Writer], letter: DeadLetter) -> list[Header]:
    return [(header, write(detail_of(letter))) for header, write, detail_of, _ in writers]


def _dialect(
    name: DeadLetterDialect,
    rows: tuple[_Row, ...] = (),
    too: tuple[tuple[str, str, Callable[[Any], bytes]], ...] = (),
) -> Dialect:
    has_name = {row.detail for row in rows} - _ALWAYS
    return Dialect(
        name,
        named=(*_writers(rows), *(_writer(*each) for each in too)),
        rest=_writers(row for row in _KPIPE if row.detail not in has_name),
    )


DIALECTS: Mapping[DeadLetterDialect, Dialect] = {
    "kpipe": _dialect("kpipe"),
    "connect": _dialect("connect", _CONNECT, _CONNECT_TOO),
    "spring": _dialect("spring", _SPRING),
    "streams": _dialect("streams", _STREAMS),
}

_ROWS: Mapping[DeadLetterDialect, tuple[_Row, ...]] = {
    "kpipe": (*_KPIPE, _RETRIES, *_FIRST),
    "connect": _CONNECT,
    "spring": (*_SPRING, _SPRING_CAUSE),
    "streams": _STREAMS,
}
READERS: Mapping[str, tuple[DeadLetterDialect, str, Callable[[bytes], Any]]] = {
    row.header: (dialect, row.detail, row.codec.read) for dialect, rows in _ROWS.items() for row in rows
}
"""Header name to the dialect, the detail and how its bytes are read."""


ALWAYS_HEADERS = frozenset(each.header for each in _REDRIVE_WRITERS)
"""Names in every block that kpipe writes."""
OUR_HEADERS = frozenset({FORMAT_HEADER, LENGTH_HEADER, *(row.header for row in _ROWS["kpipe"])})
FAULT_HEADERS = frozenset({*OUR_HEADERS, *READERS, *_NEVER_WRITTEN, *(header for _, header, _ in _CONNECT_TOO)})
"""Names that dead letters use, in any dialect."""
