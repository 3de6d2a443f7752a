"""Segments that take their process with them, or never come back, over a record that says so."""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from airflow_provider_kpipe import batch_segment

# To linger is long enough for what is fetched ahead to be inflated.
SLEEPS = {"sleep": 600, "linger": 5}


def fate_of(value: bytes) -> str:
    """What such a record says beside its number."""
    return str(json.loads(value).get("fate", ""))


def eat_memory() -> None:
    eaten = []
    while True:
        eaten.append(bytearray(64 * 1024 * 1024))


def fill_memory() -> None:
    """Take all memory but for a bit, for three seconds. It is only reserved: nothing is written there."""
    taken = []
    for size in (64 * 1024 * 1024, 1024 * 1024):
        with suppress(OSError):
            while True:
                taken.append(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    # What runs needs some; a thread's stack is larger.
    del taken[-4:]
    time.sleep(3)


DEEDS = {"eat": eat_memory, "fill": fill_memory}


def meet(fate: str) -> None:
    if fate == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif fate == "exit":
        os._exit(3)
    elif fate in DEEDS:
        DEEDS[fate]()
    elif fate == "orphan":
        if os.fork():
            os._exit(3)
        # Whoever waits for the end of the task's output waits for ours, too.
        os.closerange(0, 3)
        leave_a_mark()
        time.sleep(600)
    elif fate == "fail":
        raise ValueError("no good")
    elif fate in SLEEPS:
        leave_a_mark()
        time.sleep(SLEEPS[fate])
    elif fate == "hang":
        # As a library in C does that lets no handler of Python's come to its turn.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        time.sleep(600)


def deadly(record: Any) -> Any:
    meet(fate_of(record.value))
    return record


def measured(record: Any) -> Any:
    record.value = str(len(record.value)).encode()
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


class OpensNever:
    """In partition 0."""

    fate = "sleep"

    def open(self, context: Any) -> None:
        meet(self.fate if context.partition == 0 else "")

    def process(self, record: Any) -> Any:
        return record


class OpensNeverInC(OpensNever):
    fate = "hang"


class ClosesNever:
    """In partition 0."""

    fate = "sleep"

    def open(self, context: Any) -> None:
        self.partition = context.partition

    def process(self, record: Any) -> Any:
        return deadly(record)

    def close(self) -> None:
        meet(self.fate if self.partition == 0 else "")


class ClosesNeverInC(ClosesNever):
    fate = "hang"


class ClosesDead(ClosesNever):
    fate = "segfault"


class DeadlyAfterMany:
    """Dies of what it has seen, and of no record in particular."""

    most = 700

    def open(self, context: Any) -> None:
        self.seen = 0

    def process(self, record: Any) -> Any:
        self.seen += 1
        if self.seen > self.most:
            meet("segfault")
        return record


class DeadlyAfterFew(DeadlyAfterMany):
    """Often with one record in hand."""

    most = 20


class Leaks:
    """Keeps memory for each record, and never gives it back."""

    def open(self, context: Any) -> None:
        self.kept: list[bytearray] = []

    def process(self, record: Any) -> Any:
        self.kept.append(bytearray(4 * 1024 * 1024))
        return record


KEPT: list[bytearray] = []


@batch_segment
def leaks_in_batches(batch: Any) -> Any:
    KEPT.extend(bytearray(8 * 1024 * 1024) for _ in range(batch.num_rows))
    return batch


def deadly_choice(fault: Any, record: Any) -> str:
    meet("segfault")
    return "skip"


def chooses_never(fault: Any, record: Any) -> str:
    meet("sleep")
    return "skip"


def chooses_never_in_c(fault: Any, record: Any) -> str:
    meet("hang")
    return "skip"


def maps_never(letter: Any) -> Any:
    meet("sleep")


def maps_never_in_c(letter: Any) -> Any:
    meet("hang")


def leaves_a_mark(record: Any) -> Any:
    """Says by whom it was handled."""
    leave_a_mark()
    return record


def leave_a_mark() -> None:
    """Where a test looks for it."""
    if marks := os.environ.get("KPIPE_TEST_MARKS"):
        Path(marks, str(os.getpid())).touch()
