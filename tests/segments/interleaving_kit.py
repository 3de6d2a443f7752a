"""One work in every kind of segment: by its number, a record becomes one output, two, none or a dead letter."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pyarrow as pa

from airflow_provider_kpipe import batch_segment


def outputs_of(number: int) -> int | None:
    """How many come of a record; None is a fault."""
    if number % 7 == 3:
        return None
    if number % 11 == 5:
        return 0
    return 2 if number % 13 == 6 else 1


def sort_out(record: Any) -> Any:
    number = json.loads(record.value)["id"]
    outputs = outputs_of(number)
    if outputs is None:
        raise ValueError(f"{number} cannot pass")
    return [record.copy() for _ in range(outputs)]


async def sort_out_async(record: Any) -> Any:
    await asyncio.sleep(0)
    return sort_out(record)


@batch_segment
def sort_out_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = []
    for row, value in enumerate(batch.column("value").to_pylist()):
        number = json.loads(value)["id"]
        outputs = outputs_of(number)
        if outputs is None:
            raise ValueError(f"{number} cannot pass")
        rows += [row] * outputs
    return batch.take(pa.array(rows, pa.int64()))


def untouched(record: Any) -> Any:
    """The same, fixed: every record passes."""
    return record
