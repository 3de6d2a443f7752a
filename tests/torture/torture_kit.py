"""The segments of the torture: what becomes of a record, its value says. Shipped to the workers as a module."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pyarrow as pa

from airflow_provider_kpipe import batch_segment

RUN_HEADER = "torture-run"
PACE_SECONDS = 0.003
"""So that a run lasts long enough for something to happen to it."""


class PoisonError(Exception):
    """A record that does not pass."""


def passes(value: bytes) -> bool:
    """Tell a record that is filtered from one that comes out; raises for one that is poison."""
    kind: str = json.loads(value)["kind"]
    if kind == "poison":
        raise PoisonError(f"a record of kind {kind}")
    return kind != "filtered"


class SortOut:
    """One record after another."""

    def open(self, context: Any) -> None:
        self.run = context.run_key.encode()

    def process(self, record: Any) -> Any:
        time.sleep(PACE_SECONDS)
        return self.told(record) if passes(record.value) else None

    def told(self, record: Any) -> Any:
        record.headers.append((RUN_HEADER, self.run))
        return record


class SortOutAsync(SortOut):
    """Several at once, in coroutines."""

    async def process(self, record: Any) -> Any:
        await asyncio.sleep(PACE_SECONDS)
        return self.told(record) if passes(record.value) else None


class Fixed(SortOut):
    """The fixed segment: poison passes."""

    def process(self, record: Any) -> Any:
        time.sleep(PACE_SECONDS)
        return self.told(record) if json.loads(record.value)["kind"] != "filtered" else None


@batch_segment(headers=True)
class SortOutBatch:
    """Whole batches; one poison record makes a call raise."""

    def open(self, context: Any) -> None:
        self.header = {"key": RUN_HEADER, "value": context.run_key.encode()}

    def process(self, batch: Any) -> Any:
        time.sleep(PACE_SECONDS * batch.num_rows / 4)
        kept = batch.filter(pa.array([passes(value) for value in batch.column("value").to_pylist()], pa.bool_()))
        at = kept.schema.get_field_index("headers")
        headers = [[*(each or ()), self.header] for each in kept.column(at).to_pylist()]
        return kept.set_column(at, "headers", pa.array(headers, kept.schema.field(at).type))
