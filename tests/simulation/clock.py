"""Virtual time: what stands in for `time`, and the event loop that lives in it."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from tests.simulation.processes import RIGHT
from tests.simulation.stage import STAGE

# 2023: what is written now is older than what a checkout of today writes.
EPOCH_SECONDS = 1_700_000_000


class VirtualTime:
    """The functions of `time` that the product calls."""

    @staticmethod
    def monotonic() -> float:
        return STAGE.simulation.now

    @staticmethod
    def monotonic_ns() -> int:
        return int(STAGE.simulation.now * 1e9)

    perf_counter = monotonic
    perf_counter_ns = monotonic_ns

    @staticmethod
    def time() -> float:
        return EPOCH_SECONDS + _read_clock()

    @staticmethod
    def time_ns() -> int:
        return int((EPOCH_SECONDS + _read_clock()) * 1e9)

    @staticmethod
    def sleep(seconds: float) -> None:
        STAGE.simulation.sleep(seconds)


def _read_clock() -> float:
    """Return the seconds that the clock of the current process shows: hosts disagree, unlike those that wait."""
    task = STAGE.simulation.current
    return (RIGHT if task is None else task.process.clock).reads(STAGE.simulation.now)


class VirtualSelector:
    """Waits in virtual time, and lets other loops of this thread run meanwhile."""

    def select(self, timeout: float | None = None) -> list[Any]:
        loop, hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
        asyncio._set_running_loop(None)
        try:
            if timeout:
                STAGE.simulation.sleep(timeout)
            else:
                STAGE.simulation.hand_over()
        finally:
            asyncio._set_running_loop(loop)
            sys.set_asyncgen_hooks(*hooks)
        return []

    def close(self) -> None:
        return


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop of one task; nothing but time happens to it."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = VirtualSelector()
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return STAGE.simulation.now

    def _process_events(self, events: list[Any]) -> None:
        return

    def _write_to_self(self) -> None:
        return
