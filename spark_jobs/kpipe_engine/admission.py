"""Whether records are admitted: not while what came of the last ones waits too long to be written."""

from __future__ import annotations

import time
from collections.abc import Callable

from kpipe_engine.errors import NoAnswerError
from kpipe_engine.yielding import YieldOrders

# A full queue empties in less than this where a broker takes what it is given.
PATIENCE_SECONDS = 1.0
# A broker that has taken nothing for so long is given up, and sooner where somebody waits for the partition.
STANDSTILL_SECONDS = 120.0
STANDSTILL_WHEN_STOPPED_SECONDS = 10.0


class Admission:
    """Pauses reading once output has waited too long, and resumes it when the output has drained."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None], orders: YieldOrders) -> None:
        self._pause, self._resume, self._orders = pause, resume, orders
        self._waits_since: float | None = None
        self._left, self._moved_at = 0, 0.0
        self.paused = False

    def output_waits(self, left: int) -> None:
        """Called again and again while it does: for so many messages. Not for ever, if none of them goes."""
        now = time.monotonic()
        if self._waits_since is None:
            self._waits_since = self._moved_at = now
        elif not self.paused and now - self._waits_since > PATIENCE_SECONDS:
            self.paused = True
            self._pause()
        if left != self._left:
            self._left, self._moved_at = left, now
        longest = STANDSTILL_WHEN_STOPPED_SECONDS if self._orders.reason else STANDSTILL_SECONDS
        if now - self._moved_at > longest:
            raise NoAnswerError(f"the broker has taken nothing for {longest:g} s")

    def output_flows(self) -> None:
        self._waits_since = None
        if self.paused:
            self.paused = False
            self._resume()
