"""Limits of a chunk: a number of records, and a number of seconds for reading them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from kpipe_engine.stop_signal import StopSignal


class Chunk:
    """Count of the records of a chunk until it is full. It is full, too, once there is a reason to yield."""

    def __init__(self, records: int, seconds: float, stop_signal: StopSignal, *, reads_once: bool = False) -> None:
        self._records, self._seconds, self._stop_signal = records, seconds, stop_signal
        self._reads_once = reads_once
        self.handled = 0
        self._until = math.inf
        self._is_closed = False

    @property
    def is_full(self) -> bool:
        return (
            self._is_closed
            or self.handled >= self._records
            or time.monotonic() >= self._until
            or self._stop_signal.reason is not None
        )

    def room(self, most: int) -> int:
        return min(self._records - self.handled, most)

    def until_after(self, messages: Sequence[Any]) -> float:
        """Return the time when the chunk ends.

        The clock runs from the first record on: a slow broker should not make the chunk end empty.
        """
        if messages and self._until == math.inf:
            self._until = time.monotonic() + min(self._seconds, self._stop_signal.seconds_left)
        return self._until

    def add(self, handled: int, of: int) -> None:
        """Count handled records; if some of the records that were read are left, close the chunk."""
        self.handled += handled
        self._is_closed = handled < of or (self._reads_once and of > 0)
