from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import time
from typing import Any

import pytest

from kpipe_engine.errors import SegmentTimeoutError
from kpipe_engine.time_limit import TimeLimit, choose_limit
from kpipe_engine.whereabouts import Whereabouts


@pytest.fixture
def whereabouts() -> Whereabouts:
    return Whereabouts()


def hangs(_given: Any) -> Any:
    time.sleep(600)


def hangs_and_catches(_given: Any) -> Any:
    with contextlib.suppress(Exception):
        time.sleep(600)


async def awaits(given: Any) -> Any:
    await asyncio.sleep(given)
    return "done"


def test_without_seconds_there_is_no_limit(whereabouts: Whereabouts) -> None:
    assert choose_limit(None, whereabouts) is None


@pytest.mark.parametrize("call", [hangs, hangs_and_catches])
def test_a_call_that_takes_too_long_is_interrupted(whereabouts: Whereabouts, call: Any) -> None:
    limited = TimeLimit(0.05, whereabouts).around(call)
    for _ in range(2):
        with pytest.raises(SegmentTimeoutError, match=r"no answer within segment_timeout, 0\.05 s"):
            limited(None)
    assert whereabouts.longest_call == 0


def test_a_call_that_comes_back_gives_what_it_gives_and_nothing_rings_later(whereabouts: Whereabouts) -> None:
    limited = TimeLimit(0.05, whereabouts).around(str.upper)
    assert limited("given") == "GIVEN"
    threading.Event().wait(0.1)
    assert whereabouts.longest_call == 0


def test_a_bell_that_rings_when_the_call_is_over_does_nothing(whereabouts: Whereabouts) -> None:
    TimeLimit(0.05, whereabouts)._ring(14, inspect.currentframe())


def test_a_bell_of_the_call_before_does_not_interrupt_the_next_one(whereabouts: Whereabouts) -> None:
    limit = TimeLimit(60, whereabouts)

    def late(given: str) -> str:
        limit._ring(14, inspect.currentframe())
        return given.upper()

    assert limit.around(late)("given") == "GIVEN"


def test_an_error_of_the_call_stays_what_it_is(whereabouts: Whereabouts) -> None:
    with pytest.raises(ZeroDivisionError):
        TimeLimit(60, whereabouts).around(lambda given: 1 // given)(0)
    assert whereabouts.longest_call == 0


def test_in_another_thread_the_whereabouts_say_how_long_a_call_has_been_at_it(whereabouts: Whereabouts) -> None:
    begun, go = threading.Event(), threading.Event()

    def waits(_given: Any) -> bool:
        begun.set()
        return go.wait(60)

    thread = threading.Thread(target=TimeLimit(0.001, whereabouts).around(waits), args=[None])
    thread.start()
    assert begun.wait(60)
    assert whereabouts.longest_call > 0
    go.set()
    thread.join()
    assert whereabouts.longest_call == 0


def test_what_is_awaited_is_cancelled(whereabouts: Whereabouts) -> None:
    limited = TimeLimit(0.05, whereabouts).around(awaits)
    assert inspect.iscoroutinefunction(limited)
    assert asyncio.run(limited(0)) == "done"
    with pytest.raises(SegmentTimeoutError):
        asyncio.run(limited(600))
    assert whereabouts.longest_call == 0


def test_a_timeout_of_the_segments_own_is_an_error_like_any_other(whereabouts: Whereabouts) -> None:
    async def fails(_given: Any) -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        asyncio.run(TimeLimit(60, whereabouts).around(fails)(None))
