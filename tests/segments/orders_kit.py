"""Segments for tests, found by import path as a user's are."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from typing import Any


def untouched(record: Any) -> Any:
    return record


def drop(record: Any) -> None:
    """All are filtered."""


def parse(record: Any) -> Any:
    record.value = json.dumps({**json.loads(record.value), "seen": True}).encode()
    return record


def only_even(record: Any) -> Any:
    return record if json.loads(record.value)["id"] % 2 == 0 else None


def twice(record: Any) -> Any:
    return [record.copy(key=b"first"), record.copy(key=b"second")]


def too_large(record: Any) -> Any:
    """Every tenth record becomes one that no producer takes."""
    if json.loads(record.value)["id"] % 10 == 3:
        record.value = b"x" * 2_000_000
    return record


def second_too_large(record: Any) -> Any:
    return twofold(record) if record.key == b"5" else record


def every_third_second_too_large(record: Any) -> Any:
    return twofold(record) if json.loads(record.value)["id"] % 3 == 0 else record


def twofold(record: Any) -> Any:
    """Of which the second is one that no producer takes."""
    return [record.copy(), record.copy(value=b"x" * 2_000_000)]


def to_its_own_place(record: Any) -> Any:
    """Odd ones to another topic, each to a partition by its id."""
    at = json.loads(record.value)["id"]
    record.partition = at % 3
    if at % 2:
        record.topic = f"{record.metadata.topic}.dead"
    return record


def slowly(record: Any) -> Any:
    time.sleep(0.01)
    return record


def prints(record: Any) -> Any:
    """To whatever is open, and closes the door behind it."""
    said = f"a segment says {record.key!r}\n" * 100
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ValueError):
            stream.write(said)
            stream.flush()
    os.write(2, said.encode())
    if record.key == b"50":
        sys.stdout.close()
    return record


def ends_its_program(record: Any) -> Any:
    if record.key == b"7":
        sys.exit("a segment wants to leave")
    return record


def leaves_without_a_word(record: Any) -> Any:
    if record.key == b"7":
        os._exit(0)
    return record


GATE = threading.Event()


def behind_the_gate(record: Any) -> Any:
    """Waits until a test in the same process opens it."""
    assert GATE.wait(60)
    return record


def unhurriedly(record: Any) -> Any:
    time.sleep(0.0005)
    return record


class Opened:
    """Shows that it was opened, by a header."""

    def open(self, context: Any) -> None:
        self.partition = context.partition

    def process(self, record: Any) -> Any:
        record.headers.append(("opened-for", str(self.partition).encode()))
        return record


class HoldsOneBack:
    """Gives out each record beside the next one, as it was read."""

    def open(self, context: Any) -> None:
        self.held: list[Any] = []

    def process(self, record: Any) -> Any:
        given, self.held = self.held, [record]
        return given
