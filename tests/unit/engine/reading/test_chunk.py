from __future__ import annotations

import math
import time

import pytest

from kpipe_engine.reading.chunk import Chunk
from kpipe_engine.stop_signal import StopSignal


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return clock


def test_it_is_full_of_records() -> None:
    chunk = Chunk(10, 60, StopSignal())
    chunk.add(7, of=7)
    assert (chunk.is_full, chunk.room(1_000)) == (False, 3)
    chunk.add(3, of=3)
    assert chunk.is_full


def test_it_is_full_of_seconds_counted_from_the_first_record(now: list[float]) -> None:
    chunk = Chunk(10, 5, StopSignal())
    assert chunk.until_after([]) == math.inf
    now[0] += 1_000
    assert chunk.until_after(["record"]) == now[0] + 5
    now[0] += 4
    assert chunk.until_after(["another"]) == now[0] + 1
    assert not chunk.is_full
    now[0] += 1
    assert chunk.is_full


def test_nothing_follows_a_record_that_was_not_handled() -> None:
    chunk = Chunk(10, 60, StopSignal())
    chunk.add(2, of=5)
    assert chunk.is_full


def test_an_order_to_yield_closes_it() -> None:
    stop_signal = StopSignal()
    chunk = Chunk(10, 60, stop_signal)
    stop_signal.request("enough")
    assert chunk.is_full


def test_it_ends_at_the_deadline_of_the_run() -> None:
    chunk = Chunk(10, 600, StopSignal(deadline=time.time() + 20))
    assert chunk.until_after(["record"]) - time.monotonic() <= 20


def test_one_that_is_made_of_a_single_read_is_full_after_it() -> None:
    chunk = Chunk(10, 60, StopSignal(), reads_once=True)
    chunk.add(0, of=0)
    assert not chunk.is_full
    chunk.add(2, of=2)
    assert chunk.is_full
