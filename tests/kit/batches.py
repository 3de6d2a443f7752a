"""Chains in which some segments take Arrow batches. They are attributes of a module that each test fills."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

from airflow_provider_kpipe import batch_segment
from airflow_provider_kpipe.record import Origin, SourceMessage
from airflow_provider_kpipe.segments import SegmentContext
from kpipe_engine.batches.stages import StageChain
from kpipe_engine.errors import SegmentError
from kpipe_engine.writing.output_rows import Row

USERS_MODULE = "user_batches"
MakeMessage = Callable[..., SourceMessage]
MakeMessages = Callable[..., list[SourceMessage]]
Batch: TypeAlias = pa.RecordBatch


def chain(*names: str) -> StageChain:
    context = SegmentContext("run", "orders", 3, logging.getLogger("kpipe.segments"))
    return StageChain([f"{USERS_MODULE}:{name}" for name in names], context, Origin("run"))


def run(segments: StageChain, given: list[SourceMessage]) -> tuple[list[Row], dict[int, SegmentError]]:
    segments.open()
    return segments.process(given)


def values(rows: list[Row]) -> list[Any]:
    return [row[2] for row in rows]


def headers(rows: list[Row]) -> list[Any]:
    return [row[0].headers() if row[3] is None else row[3] for row in rows]


def offsets(rows: list[Row]) -> list[int]:
    return [row[0].offset() for row in rows]


def with_value(batch: Batch, column: Any) -> Batch:
    return batch.set_column(batch.schema.get_field_index("value"), "value", column)


def appending(letter: bytes) -> Any:
    """A batch segment that appends to each value, and cannot where it says so."""

    @batch_segment
    def append(batch: Batch) -> Batch:
        found = batch["value"].to_pylist()
        if any(b"bad" in value for value in found):
            raise ValueError(f"bad among {len(found)}")
        return with_value(batch, pa.array([value + letter for value in found]))

    return append


def passing(change: Callable[[Batch], Any]) -> Any:
    return batch_segment(lambda batch: change(batch))


def noting(seen: list[Batch]) -> Any:
    """A batch segment that notes what it takes, and gives it back."""

    @batch_segment
    def note(batch: Batch) -> Batch:
        seen.append(batch)
        return batch

    return note
