"""Counts what Python does for each record: a number that is the same on every machine, unlike a duration."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any


class Counted(int):
    """A number whose comparisons are calls like any other, though C makes them."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other)

    def __lt__(self, other: int) -> bool:
        return int.__lt__(self, other)

    def __hash__(self) -> int:
        return int.__hash__(self)


def calls_per_record(run: Callable[[], Any], records: int) -> dict[str, int]:
    """How often each function is called, C's included."""
    return _per_record(calls_of(run), records)


def calls_of(run: Callable[[], Any]) -> Counter[str]:
    """Count the calls of each function, C's included."""
    counted: Counter[str] = Counter()

    def note(frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            counted[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            counted[called.__qualname__] += 1

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return counted


def instructions_per_record(run: Callable[[], Any], records: int) -> int:
    """How many instructions of Python's bytecode run."""
    counted: Counter[tuple[Any, int]] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> Any:
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            counted[frame.f_code, frame.f_lasti] += 1
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        run()
    finally:
        sys.settrace(before)
    return sum(_per_record(counted, records).values())


def _per_record(counted: Counter[Any], records: int) -> dict[Any, int]:
    """What happens less often than once for each record, reading and waiting, is none of its effort: how often that
    happens depends on the clock."""
    return {what: times // records for what, times in counted.items() if times >= records}
