"""Rows that travel between segments in a chain with batch segments: each is a record as a plain tuple."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeAlias

from airflow_provider_kpipe.record import Origin, Record, SourceMessage

# The source message, then key, value, headers (None as long as they are the message's), timestamp, topic and partition
# as in a record. A tuple costs a tenth of a record to make, and a column is one `zip` away.
Row: TypeAlias = tuple[SourceMessage, Any, Any, Any, Any, str | None, int | None]


def row_of_message(message: SourceMessage) -> Row:
    return (message, message.key(), message.value(), None, message.timestamp()[1], None, None)


def row_of_record(message: SourceMessage, record: Record) -> Row:
    # A record that a segment held back, and returned with a later message, has headers of its own.
    headers = record.own_headers if record.message is message else record.headers
    return (message, record.key, record.value, headers, record.timestamp, record.topic, record.partition)


def record_of_row(row: Row, origin: Origin) -> Record:
    message, key, value, headers, timestamp, topic, partition = row
    record = Record(message, origin)
    record.key, record.value = key, value
    record.own_headers = None if headers is None else list(headers)
    record.timestamp, record.topic, record.partition = timestamp, topic, partition
    return record


def in_source_order(portions: Sequence[list[Row]]) -> list[Row]:
    """Merge all rows into one list, in the order of the source; rows of one record keep their order."""
    if len(portions) == 1:
        return portions[0]
    return sorted(chain.from_iterable(portions), key=lambda row: row[0].offset())
