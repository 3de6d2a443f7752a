"""Position of a worker, in memory shared with its supervisor, which finds the records there after a death."""

from __future__ import annotations

import mmap
import time
from typing import NamedTuple

from airflow_provider_kpipe.contract.pipeline.scaling import MOST_IN_FLIGHT

_AT_WORK, _PARTITION, _FIRST, _AFTER, _READ, _IN_CHUNK, _AT_EASE, _STORED_AT, _STEP_SINCE, _FIELDS = range(10)
_IDLE, _HANDLING, _READING = range(3)
_CALLS = MOST_IN_FLIGHT
_BYTES = 8
_NO_CALLS = memoryview(bytes(_CALLS * _BYTES)).cast("q")
_LONGEST_NAME = 512


class At(NamedTuple):
    """The records that the segments of a partition have received last."""

    partition: int
    first: int
    after: int
    read: int
    """Number of the records: offsets have holes."""
    in_chunk: int
    """Number of records in the chunk, including these."""


class Reading(NamedTuple):
    """A read before the chunk has handled any record: if the worker ends in it, no record is at fault."""

    partition: int
    offset: int
    most: int
    """Number of records that were asked for."""


class Step(NamedTuple):
    """User code beside the handling of records, such as a segment that opens."""

    name: str
    seconds: float
    """Time since the step began."""


class WorkerPosition:
    """Numbers in memory that stays shared across a fork. They are written for each read, not for each record."""

    def __init__(self) -> None:
        self._numbers = memoryview(mmap.mmap(-1, (_FIELDS + _CALLS) * _BYTES)).cast("q")
        self._name = mmap.mmap(-1, _LONGEST_NAME)
        self.begin()

    def begin(self) -> None:
        """Reset everything for a new block."""
        self.leave()
        self._numbers[_AT_EASE] = 0
        self.end_step()
        self.note_stored()
        self._free = list(range(_FIELDS, _FIELDS + _CALLS))
        self._numbers[_FIELDS:] = _NO_CALLS

    def enter(self, at: At) -> None:
        """Note that segments are about to receive these records."""
        self._note(_HANDLING, at)

    def read(self, reading: Reading) -> None:
        """Note that the worker is about to ask the client for records, and has none in hand."""
        self._note(_READING, reading)

    def leave(self) -> None:
        """Note that the worker is at no record from now on."""
        self._numbers[_AT_WORK] = _IDLE

    def note_stored(self) -> None:
        self._numbers[_STORED_AT] = int(time.time())

    def note_ease(self, is_at_ease: bool) -> None:
        """Note whether chunks are of full size."""
        self._numbers[_AT_EASE] = is_at_ease

    def begin_call(self) -> int:
        """Note that a segment is called, possibly by one of many threads, and return the number of the call."""
        number = self._free.pop()
        self._numbers[number] = time.monotonic_ns()
        return number

    def end_call(self, number: int) -> None:
        self._numbers[number] = 0
        self._free.append(number)

    def begin_step(self, name: str) -> None:
        self._name[:] = name.encode(errors="replace")[:_LONGEST_NAME].ljust(_LONGEST_NAME, b"\0")
        self._numbers[_STEP_SINCE] = time.monotonic_ns()

    def end_step(self) -> None:
        self._numbers[_STEP_SINCE] = 0

    @property
    def step(self) -> Step | None:
        """Step that the worker is at, if any."""
        since = self._numbers[_STEP_SINCE]
        if not since:
            return None
        name = self._name[:].rstrip(b"\0").decode(errors="ignore")
        return Step(name, (time.monotonic_ns() - since) / 1e9)

    @property
    def longest_call(self) -> float:
        """Seconds since the start of the oldest call of a segment that has not returned."""
        begun = [each for each in self._numbers[_FIELDS:] if each]
        return (time.monotonic_ns() - min(begun)) / 1e9 if begun else 0.0

    @property
    def at(self) -> At | None:
        return At(*self._numbers[_PARTITION:_AT_EASE]) if self._numbers[_AT_WORK] == _HANDLING else None

    @property
    def reading(self) -> Reading | None:
        return Reading(*self._numbers[_PARTITION:_READ]) if self._numbers[_AT_WORK] == _READING else None

    def _note(self, work: int, numbers: tuple[int, ...]) -> None:
        self.leave()
        for field, number in enumerate(numbers, _PARTITION):
            self._numbers[field] = number
        self._numbers[_AT_WORK] = work

    @property
    def is_at_ease(self) -> bool:
        return bool(self._numbers[_AT_EASE])

    @property
    def stored_at(self) -> float:
        """Time of the last store, in seconds since 1970; at first, the time when the work began."""
        return float(self._numbers[_STORED_AT])
