"""The tasks as a user of `mapInArrow` writes them: columns in, columns out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from per_record import TASKS

_HEADERS = "headers array<struct<key: string, value: binary>>"


def schema_of(with_topic: bool) -> str:
    return f"key binary, value binary, {_HEADERS}{', topic string' if with_topic else ''}"


def columns_of(
    task: str, output: str, dead_letters: str | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    if dead_letters is not None:
        work: Callable[[pa.RecordBatch], pa.RecordBatch] = partial(_parted, TASKS[task], output, dead_letters)
    elif task == "json_arrow":
        work = _by_kernels
    elif task == "filter":
        work = partial(_filtered, TASKS[task])
    else:
        work = partial(_each, TASKS[task])
    return map(work, batches)


def _each(change: Callable[[bytes], Any], batch: pa.RecordBatch) -> pa.RecordBatch:
    values = [change(value) for value in batch["value"].to_pylist()]
    return _with_value(batch, pa.array(values, pa.binary()))


def _by_kernels(batch: pa.RecordBatch) -> pa.RecordBatch:
    from arrow_kernels import change

    return _with_value(batch, change(batch["value"]))


def _filtered(keep: Callable[[bytes], Any], batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pa.array([keep(value) is not None for value in batch["value"].to_pylist()]))


def _parted(change: Callable[[bytes], Any], output: str, dead_letters: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Send a record whose task raises to the dead letters as it came, without a reason."""
    values, topics = [], []
    for value in batch["value"].to_pylist():
        try:
            values.append(change(value))
            topics.append(output)
        except ValueError:
            values.append(value)
            topics.append(dead_letters)
    parted = _with_value(batch, pa.array(values, pa.binary()))
    return parted.append_column("topic", pa.array(topics, pa.string()))


def _with_value(batch: pa.RecordBatch, values: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index("value"), "value", values)
