"""Arrow batches from rows, and a match of the rows that a batch segment returns with those that it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_kpipe.record import SourceMessage, coordinates
from kpipe_engine.writing.output_rows import Row

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
# A segment may return these in any type that holds the same values; key and value in any type at all.
TYPES = {"timestamp": pa.int64(), "topic": pa.string(), "partition": pa.int32()}
OWN = ("key", "value", *TYPES)
SOURCE = ("source_topic", "source_partition", "source_offset", "source_timestamp")


class BatchError(Exception):
    """Breach of the rules of batch segments: smaller batches would not help."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The columns that a segment sees, and, row by row, the message and the headers, which it sees only if it asks."""

    columns: pa.RecordBatch
    messages: Sequence[SourceMessage]
    headers: Sequence[Any]
    distinct: bool = False
    """True if no record is in it twice; False if one is, or if that is unknown."""

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Batch:
        messages, keys, values, headers, timestamps, topics, partitions = zip(*rows, strict=True)
        own = {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array(timestamps, TYPES["timestamp"]),
            "topic": pa.array(topics, TYPES["topic"]),
            "partition": pa.array(partitions, TYPES["partition"]),
        }
        read_at = pa.array([message.timestamp()[1] for message in messages], TYPES["timestamp"])
        return cls(pa.RecordBatch.from_pydict({**own, **_source_columns(messages, read_at)}), messages, headers)

    @classmethod
    def of_messages(cls, messages: Sequence[SourceMessage]) -> Batch:
        """Return messages as they were read, built column by column; `of` needs a tuple for each record."""
        timestamps = pa.array([message.timestamp()[1] for message in messages], TYPES["timestamp"])
        own = {
            "key": pa.array([message.key() for message in messages], pa.binary()),
            "value": pa.array([message.value() for message in messages], pa.binary()),
            "timestamp": timestamps,
            "topic": pa.nulls(len(messages), TYPES["topic"]),
            "partition": pa.nulls(len(messages), TYPES["partition"]),
        }
        columns = pa.RecordBatch.from_pydict({**own, **_source_columns(messages, timestamps)})
        return cls(columns, messages, [None] * len(messages), distinct=True)

    def __len__(self) -> int:
        return len(self.messages)

    def slice(self, start: int, stop: int) -> Batch:
        if stop - start == len(self):
            return self
        columns = self.columns.slice(start, stop - start)
        return Batch(columns, self.messages[start:stop], self.headers[start:stop], self.distinct)

    def take(self, positions: Sequence[int]) -> Batch:
        messages, headers = self.messages, self.headers
        columns = self.columns.take(pa.array(positions, pa.int64()))
        return Batch(columns, [messages[at] for at in positions], [headers[at] for at in positions])

    def shown(self, with_headers: bool) -> pa.RecordBatch:
        """Return the Arrow batch that the segment takes."""
        if not with_headers:
            return self.columns
        headers = [
            (message.headers() if own is None else own) or []
            for message, own in zip(self.messages, self.headers, strict=True)
        ]
        return self.columns.append_column("headers", pa.array(headers, HEADERS))

    def rows(self) -> list[Row]:
        key, value, timestamp, topic, partition = (_values(self.columns.column(name)) for name in OWN)
        return list(zip(self.messages, key, value, self.headers, timestamp, topic, partition, strict=True))


def _source_columns(messages: Sequence[SourceMessage], timestamps: pa.Array) -> dict[str, pa.Array]:
    (topic, partition, _), count = coordinates(messages[0]), len(messages)
    return {
        "source_topic": pa.repeat(topic, count),
        "source_partition": pa.repeat(pa.scalar(partition, pa.int32()), count),
        "source_offset": pa.array([message.offset() for message in messages], pa.int64()),
        "source_timestamp": timestamps,
    }


def matched(given: Batch, result: Any) -> Batch:
    """Match each returned row to the record that it came from; columns that were left out stay as they were."""
    returned = _as_batch(result)
    if "value" not in returned.schema.names:
        raise BatchError(f"a batch segment gives back a column 'value'; there is only {returned.schema.names}")
    positions, order = _positions(given, returned)
    if order is not None:
        returned = returned.take(order)
    base = given if positions is None else given.take(positions)
    columns = {name: base.columns.column(name) for name in (*OWN, *SOURCE)}
    headers = base.headers
    for name, column in zip(returned.schema.names, returned.columns, strict=True):
        if name == "headers":
            headers = [
                [(one["key"], one["value"]) for one in each or ()] for each in _values(_cast(name, column, HEADERS))
            ]
        elif name not in SOURCE:
            columns[name] = _cast(name, column, TYPES[name]) if name in TYPES else column
    return Batch(pa.RecordBatch.from_pydict(columns), base.messages, headers, base.distinct)


def _as_batch(result: Any) -> pa.RecordBatch:
    if isinstance(result, pa.Table):
        return pa.RecordBatch.from_arrays([column.combine_chunks() for column in result.columns], schema=result.schema)
    if not isinstance(result, pa.RecordBatch):
        raise BatchError(
            f"a batch segment gives back a pyarrow.RecordBatch, without rows if all are filtered; "
            f"this one gave back {type(result).__name__}"
        )
    return result


def _positions(given: Batch, returned: pa.RecordBatch) -> tuple[list[int] | None, pa.Array | None]:
    """Return the source row of each returned row, in source order, and that order; None if they are the same rows."""
    if "source_offset" not in returned.schema.names:
        if returned.num_rows != len(given):
            raise ValueError(
                f"{len(given)} rows went in, {returned.num_rows} came back, and no column 'source_offset' says "
                "which they are: keep that column where rows are left out or added"
            )
        return None, None
    taken = given.columns.column("source_offset")
    offsets = _cast("source_offset", returned.column("source_offset"), taken.type)
    if offsets.equals(taken):
        return None, None
    found = pc.index_in(offsets, value_set=taken)
    if found.null_count:
        unknown = offsets.filter(found.is_null())[0]
        raise BatchError(
            f"source_offset {unknown} came back and was not in the batch of {len(given)} rows from {taken[0]} to "
            f"{taken[-1]}: leave the column 'source_offset' as it is in the rows that stay"
        )
    order = pc.array_sort_indices(found)  # stable: the outputs of one record stay in their order
    return found.take(order).to_pylist(), order


def _cast(name: str, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if column.type == wanted:
        return column
    try:
        if pa.types.is_temporal(column.type):
            raise pa.ArrowInvalid("its unit is not said to be milliseconds")
        return column.cast(wanted)
    except pa.ArrowException as error:
        raise TypeError(f"column {name!r} came back as {column.type} and should be {wanted}: {error}") from error


def _values(column: pa.Array) -> list[Any]:
    if column.null_count == len(column):
        return [None] * len(column)
    found: list[Any] = column.to_pylist()
    return found
