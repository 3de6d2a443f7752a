"""Segments that wait, fail now and then, and tell how many of them are at work at once."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

_lock = threading.Lock()
_at_work = 0
most_at_work = 0


def forget() -> None:
    global most_at_work
    most_at_work = 0


def _came(by: int) -> None:
    global _at_work, most_at_work
    with _lock:
        _at_work += by
        most_at_work = max(most_at_work, _at_work)


class Waits:
    """Longer for some than for others, so that records overtake each other."""

    def open(self, context: Any) -> Any:
        self.context = context

    def process(self, record: Any) -> Any:
        number = json.loads(record.value)["id"]
        _came(1)
        try:
            time.sleep(0.02 if number % 7 == 0 else 0.002)
            self.context.count("processed")
            if number % 10 == 3:
                raise ValueError(f"{number} cannot pass")
        finally:
            _came(-1)
        return record


class WaitsAsync(Waits):
    """The same, awaited; opened and closed asynchronously, too."""

    async def open(self, context: Any) -> None:
        await asyncio.sleep(0)
        self.context = context

    async def process(self, record: Any) -> Any:
        number = json.loads(record.value)["id"]
        _came(1)
        try:
            await asyncio.sleep(0.02 if number % 7 == 0 else 0.002)
            self.context.count("processed")
            if number % 10 == 3:
                raise ValueError(f"{number} cannot pass")
        finally:
            _came(-1)
        return record

    async def close(self) -> None:
        await asyncio.sleep(0)


async def briefly(record: Any) -> Any:
    await asyncio.sleep(0)
    return record


def held_up(record: Any) -> Any:
    """Waits, at a record that names a file, until that is there."""
    gate = json.loads(record.value).get("gate")
    while gate and not Path(gate).exists():
        time.sleep(0.02)
    return record


class Meets:
    """Waits, at its first record, until so many partitions are at work at once as the record says."""

    def open(self, context: Any) -> None:
        self.partition = context.partition
        self.met = False
        self.deadline = time.monotonic() + 60

    def process(self, record: Any) -> Any:
        if not self.met:
            said = json.loads(record.value)
            (Path(said["meeting"]) / str(self.partition)).touch()
            while len(list(Path(said["meeting"]).iterdir())) < said["need"]:
                if time.monotonic() > self.deadline:
                    raise TimeoutError(f"partition {self.partition} met too few others")
                time.sleep(0.02)
            self.met = True
        return record
