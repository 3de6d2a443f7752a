"""Segments that take their process with them, or never come back, over a record that says so."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from airflow_provider_kpipe import batch_segment


def fate_of(value: bytes) -> str:
    """What such a record says beside its number."""
    return str(json.loads(value).get("fate", ""))


def meet(fate: str) -> None:
    if fate == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif fate == "exit":
        os._exit(3)
    elif fate == "eat":
        eaten = []
        while True:
            eaten.append(bytearray(64 * 1024 * 1024))
    elif fate == "sleep":
        time.sleep(600)
    elif fate == "hang":
        # As a library in C does that lets no handler of Python's come to its turn.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        time.sleep(600)


def deadly(record: Any) -> Any:
    meet(fate_of(record.value))
    return record


async def deadly_async(record: Any) -> Any:
    if fate_of(record.value) == "await":
        await asyncio.sleep(600)
    meet(fate_of(record.value))
    return record


@batch_segment
def deadly_batch(batch: Any) -> Any:
    for value in batch.column("value").to_pylist():
        meet(fate_of(value))
    return batch


class DeadlyOpening:
    def open(self, context: Any) -> None:
        meet("segfault")

    def process(self, record: Any) -> Any:
        return record


class DeadlyAfterMany:
    """Dies of what it has seen, and of no record in particular."""

    def open(self, context: Any) -> None:
        self.seen = 0

    def process(self, record: Any) -> Any:
        self.seen += 1
        if self.seen > 700:
            meet("segfault")
        return record


def deadly_choice(fault: Any, record: Any) -> str:
    meet("segfault")
    return "skip"


def leaves_a_mark(record: Any) -> Any:
    """Says by whom it was handled."""
    Path(os.environ["KPIPE_TEST_MARKS"], str(os.getpid())).touch()
    return record
