"""Time limits of user code: of each call for records, and of other steps such as an import."""

from __future__ import annotations

import asyncio
import inspect
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType, GeneratorType
from typing import Any, Protocol

from kpipe_engine.assignment.worker_position import WorkerPosition
from kpipe_engine.errors import SegmentTimeoutError

Call = Callable[..., Any]

# An alarm counts as due after this share of its time, as no two clocks agree exactly.
EARLY = 0.9


class Limit(Protocol):
    """Limit of the time that user code may take."""

    def around(self, call: Call) -> Call:
        """Return the same call under the limit, for one record or one batch at a time."""

    def step(self, name: str) -> AbstractContextManager[None]:
        """Limit the other user code that runs in the block: an import, a segment that opens or closes."""


class NoLimit:
    """Null object: user code may take any time, and the watch costs nothing."""

    def around(self, call: Call) -> Call:
        return call

    def step(self, name: str) -> AbstractContextManager[None]:
        return nullcontext()


NO_LIMIT = NoLimit()


class TimeLimit:
    """Interrupter of calls that take too long: in the main thread by a signal, an awaited one by the event loop.

    A call in another thread, or one in C that never returns, cannot be interrupted. The supervisor sees such a call in
    the worker's `position`, and ends the worker.
    """

    def __init__(self, seconds: float, step_seconds: float, position: WorkerPosition) -> None:
        self._seconds, self._step_seconds, self._position = seconds, step_seconds, position
        self._within = f"segment_timeout, {seconds:g} s"
        self._due = math.inf
        if _in_main_thread():
            signal.signal(signal.SIGALRM, self._ring)

    def around(self, call: Call) -> Call:
        if inspect.iscoroutinefunction(call):
            return self._around_awaited(call)
        begin, end = self._position.begin_call, self._position.end_call

        def limited(*given: Any) -> Any:
            number = begin()
            try:
                return self._interrupted(call, *given) if _in_main_thread() else _complete(call(*given))
            finally:
                end(number)

        return limited

    def _around_awaited(self, call: Call) -> Call:
        async def limited(given: Any) -> Any:
            number = self._position.begin_call()
            try:
                async with asyncio.timeout(self._seconds) as limit:
                    return await call(given)
            except TimeoutError:
                if limit.expired():
                    raise self._error() from None
                raise
            finally:
                self._position.end_call(number)

        return limited

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        within = self._within
        self._position.begin_step(name)
        try:
            if _in_main_thread():
                # The successor that stores a worker's last words may have installed a handler of its own since then.
                signal.signal(signal.SIGALRM, self._ring)
                self._within = f"{self._step_seconds:g} s, in {name}"
                self._due = time.monotonic() + self._step_seconds * EARLY
                signal.setitimer(signal.ITIMER_REAL, self._step_seconds)
            yield
        finally:
            # An alarm that rings in here must not leave the step noted: the supervisor would end a healthy worker.
            try:
                self._due, self._within = math.inf, within
                if _in_main_thread():
                    signal.setitimer(signal.ITIMER_REAL, 0)
            finally:
                self._position.end_step()

    def _interrupted(self, call: Call, *given: Any) -> Any:
        self._due = time.monotonic() + self._seconds * EARLY
        signal.setitimer(signal.ITIMER_REAL, self._seconds)
        try:
            return _complete(call(*given))
        finally:
            self._due = math.inf
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        # An alarm may be late: after its call has returned, it would interrupt the engine or the next call.
        if time.monotonic() >= self._due:
            self._due = math.inf
            raise self._error()

    def _error(self) -> SegmentTimeoutError:
        return SegmentTimeoutError(f"no answer within {self._within}")


def _complete(result: Any) -> Any:
    """Return a generator's results as a list: its user code runs only when a result is asked for."""
    return list(result) if type(result) is GeneratorType else result


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
