"""Batch segments for tests, found by import path as a user's are."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

import airflow_provider_kpipe.segments
from airflow_provider_kpipe import batch_segment

Batch: TypeAlias = pa.RecordBatch


def with_values(batch: Batch, values: Any) -> Batch:
    return batch.set_column(batch.schema.get_field_index("value"), "value", values)


def changed(batch: Batch, change: Any) -> Batch:
    """Each value through a function of text, null values left alone."""
    values = [None if value is None else change(value.decode()).encode() for value in batch.column("value").to_pylist()]
    return with_values(batch, pa.array(values, pa.binary()))


@batch_segment
def untouched(batch: Batch) -> Batch:
    return batch


@batch_segment
def only_values(batch: Batch) -> Batch:
    """All that a segment must give back."""
    return batch.select(["value"])


@batch_segment
def parse(batch: Batch) -> Batch:
    """As `orders_kit.parse`: one record that is no JSON makes the whole call raise."""
    return changed(batch, lambda text: json.dumps({**json.loads(text), "seen": True}))


@batch_segment
def only_even(batch: Batch) -> Batch:
    """By id, where a parsed value is at hand, and otherwise by what the text says."""
    ids = [json.loads(value)["id"] for value in batch.column("value").to_pylist()]
    return batch.filter(pa.array([each % 2 == 0 for each in ids]))


@batch_segment
def twice(batch: Batch) -> Batch:
    """Two outputs for each record, with keys of their own; in an order that is not the source's."""
    first, second = (
        batch.set_column(0, "key", pa.array([key] * batch.num_rows, pa.binary())) for key in (b"first", b"second")
    )
    return pa.Table.from_batches([first, second]).combine_chunks().to_batches()[0]


@batch_segment
def too_large(batch: Batch) -> Batch:
    """Every tenth record becomes one that no producer takes."""
    return changed(batch, lambda text: "x" * 2_000_000 if json.loads(text)["id"] % 10 == 3 else text)


@batch_segment
def second_too_large(batch: Batch) -> Batch:
    more = changed(batch.filter(pc.equal(batch.column("key"), b"5")), lambda text: "x" * 2_000_000)
    return pa.Table.from_batches([batch, more]).combine_chunks().to_batches()[0]


@batch_segment
def someone_elses_offset(batch: Batch) -> Batch:
    offsets = pa.array([999] * batch.num_rows, pa.int64())
    return batch.set_column(batch.schema.get_field_index("source_offset"), "source_offset", offsets)


@batch_segment(headers=True)
def with_header(batch: Batch) -> Batch:
    added = {"key": "from", "value": airflow_provider_kpipe.segments.__file__.encode()}
    headers = [[*each, added] for each in batch.column("headers").to_pylist()]
    column = pa.array(headers, batch.schema.field("headers").type)
    return batch.set_column(batch.schema.get_field_index("headers"), "headers", column)


@batch_segment
class Opened:
    """Fails its first two calls, and shows by the key that it was opened."""

    def open(self, context: Any) -> None:
        self.context = context
        self.calls = 0

    def process(self, batch: Batch) -> Batch:
        self.context.count("rows", batch.num_rows)
        self.calls += 1
        if self.calls < 3:
            raise TimeoutError(f"call {self.calls}")
        key = str(self.context.partition).encode()
        return batch.set_column(0, "key", pa.array([key] * batch.num_rows, pa.binary()))


@batch_segment
class Counting:
    """Counts the rows it gives."""

    def open(self, context: Any) -> None:
        self.context = context

    def process(self, batch: Batch) -> Batch:
        self.context.count("rows", batch.num_rows)
        return batch


@batch_segment
class Shy:
    """Fails its first two calls over record 5; what it gives is counted as in `Counting`."""

    def open(self, context: Any) -> None:
        self.context = context
        self.alone = 0

    def process(self, batch: Batch) -> Batch:
        self.context.count("passed", batch.num_rows)
        if b"5" in batch.column("key").to_pylist() and self.alone < 2:
            self.alone += batch.num_rows == 1
            raise TimeoutError("shy")
        return batch
