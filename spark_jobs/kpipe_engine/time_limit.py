"""How long a segment may take over what it is given."""

from __future__ import annotations

import asyncio
import inspect
import math
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from kpipe_engine.errors import SegmentTimeoutError
from kpipe_engine.whereabouts import Whereabouts

Call = Callable[[Any], Any]

# No two clocks agree to the last.
EARLY = 0.9


class TimeLimit:
    """Interrupts a call that takes too long: in the main thread by a signal, while it is awaited by the event loop.

    What it cannot interrupt, as a call in another thread or one in C that never comes back, the supervisor of the
    worker sees by its whereabouts, and ends the worker.
    """

    def __init__(self, seconds: float, whereabouts: Whereabouts) -> None:
        self._seconds, self._whereabouts = seconds, whereabouts
        self._due = math.inf
        if _in_main_thread():
            signal.signal(signal.SIGALRM, self._ring)

    def around(self, call: Call) -> Call:
        if inspect.iscoroutinefunction(call):
            return self._around_awaited(call)
        begin, end = self._whereabouts.begin_call, self._whereabouts.end_call

        def limited(given: Any) -> Any:
            number = begin()
            try:
                return self._interrupted(call, given) if _in_main_thread() else call(given)
            finally:
                end(number)

        return limited

    def _around_awaited(self, call: Call) -> Call:
        async def limited(given: Any) -> Any:
            number = self._whereabouts.begin_call()
            try:
                async with asyncio.timeout(self._seconds) as limit:
                    return await call(given)
            except TimeoutError:
                if limit.expired():
                    raise self._error() from None
                raise
            finally:
                self._whereabouts.end_call(number)

        return limited

    def _interrupted(self, call: Call, given: Any) -> Any:
        self._due = time.monotonic() + self._seconds * EARLY
        signal.setitimer(signal.ITIMER_REAL, self._seconds)
        try:
            return call(given)
        finally:
            self._due = math.inf
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        # A bell may come late: when its call has come back, it would interrupt the engine, or the next call.
        if time.monotonic() >= self._due:
            self._due = math.inf
            raise self._error()

    def _error(self) -> SegmentTimeoutError:
        return SegmentTimeoutError(f"no answer within segment_timeout, {self._seconds:g} s")


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def choose_limit(seconds: float | None, whereabouts: Whereabouts) -> TimeLimit | None:
    return None if seconds is None else TimeLimit(seconds, whereabouts)
