"""Segments that take their time over one record."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from airflow_provider_kpipe import batch_segment

SLOW = 5


def pause() -> None:
    """Tests put something else in its place."""
    time.sleep(1)


def slowly(record: Any) -> Any:
    """So that a stop comes before a few hundred records are through, on any machine."""
    time.sleep(0.1)
    return record


def slow_in_the_middle(record: Any) -> Any:
    if json.loads(record.value)["id"] == SLOW:
        pause()
    return record


async def slow_in_the_middle_awaited(record: Any) -> Any:
    if json.loads(record.value)["id"] == SLOW:
        await asyncio.to_thread(pause)
    return record


@batch_segment
def slow_in_the_middle_of_a_batch(batch: Any) -> Any:
    if SLOW in [json.loads(value)["id"] for value in batch.column("value").to_pylist()]:
        pause()
    return batch
