"""Which records a worker is at, in memory that it shares with its supervisor: there it is found when it has died."""

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
    """The records that the segments of a partition were given last."""

    partition: int
    first: int
    after: int
    read: int
    """How many they are: offsets have holes."""
    in_chunk: int
    """How many the chunk has with them."""


class Reading(NamedTuple):
    """A read before which nothing of the chunk was handled: no record is at fault for what ends the worker."""

    partition: int
    offset: int
    most: int
    """So many records were asked for."""


class Step(NamedTuple):
    """User code beside the handling of records, such as a segment that opens."""

    name: str
    seconds: float
    """So long it has been at it."""


class WorkerPosition:
    """Numbers in memory that stays one and the same across a fork. Written for each read, not for each record."""

    def __init__(self) -> None:
        self._numbers = memoryview(mmap.mmap(-1, (_FIELDS + _CALLS) * _BYTES)).cast("q")
        self._name = mmap.mmap(-1, _LONGEST_NAME)
        self.begin()

    def begin(self) -> None:
        """With a block: nothing is known of it yet."""
        self.leave()
        self._numbers[_AT_EASE] = 0
        self.end_step()
        self.note_stored()
        self._free = list(range(_FIELDS, _FIELDS + _CALLS))
        self._numbers[_FIELDS:] = _NO_CALLS

    def enter(self, at: At) -> None:
        """Segments are about to be given these records."""
        self._note(_HANDLING, at)

    def read(self, reading: Reading) -> None:
        """The client is about to be asked for records, and none is in hand."""
        self._note(_READING, reading)

    def leave(self) -> None:
        """What comes now has to do with no record."""
        self._numbers[_AT_WORK] = _IDLE

    def note_stored(self) -> None:
        self._numbers[_STORED_AT] = int(time.time())

    def note_ease(self, is_at_ease: bool) -> None:
        """Whether chunks are of full size."""
        self._numbers[_AT_EASE] = is_at_ease

    def begin_call(self) -> int:
        """A segment is called, by one of many threads maybe."""
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
        """The one that the worker is at."""
        since = self._numbers[_STEP_SINCE]
        if not since:
            return None
        name = self._name[:].rstrip(b"\0").decode(errors="ignore")
        return Step(name, (time.monotonic_ns() - since) / 1e9)

    @property
    def longest_call(self) -> float:
        """For how many seconds a segment has been at it that has not come back."""
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
        """When something was stored, in seconds since 1970; at first, when the work began."""
        return float(self._numbers[_STORED_AT])
