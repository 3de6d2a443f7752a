"""Reading pauses while output waits for long, once, and resumes when it flows, once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from kpipe_engine.errors import ChunkFailedError, NoAnswerError
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing.backpressure import (
    LOOK_SECONDS,
    PATIENCE_SECONDS,
    STANDSTILL_SECONDS,
    STANDSTILL_WHEN_STOPPED_SECONDS,
    Admission,
)


class Reading:
    """Reader and assignment in one: it keeps what is done to reading, and what is emitted of it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def pause(self) -> None:
        self.done.append("pause")

    def resume(self) -> None:
        self.done.append("resume")

    def emit(self, event: str) -> None:
        self.done.append(event)


def admission_of(
    reading: Any = None, stop_signal: StopSignal | None = None, is_well: Callable[[], bool] = lambda: False
) -> Admission:
    reading = reading or Reading()
    return Admission(reading, reading, stop_signal or StopSignal(), is_well)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return clock


def test_output_that_waits_shortly_pauses_nothing(now: list[float]) -> None:
    reading = Reading()
    admission = admission_of(reading)
    for _ in range(10):
        admission.output_waits(5)
        now[0] += PATIENCE_SECONDS * 0.9
        admission.output_waits(5)
        admission.output_flows()
    assert reading.done == []


def test_output_that_waits_for_long_pauses_until_it_flows(now: list[float]) -> None:
    reading = Reading()
    admission = admission_of(reading)
    for _ in range(2):
        for _ in range(5):
            admission.output_waits(5)
            now[0] += PATIENCE_SECONDS * 0.6
        assert admission.paused
        admission.output_flows()
        admission.output_flows()
        assert not admission.paused
    once = ["pause", "paused", "resume", "resumed"]
    assert reading.done == [*once, *once]


def test_output_that_moves_is_waited_for_and_output_that_does_not_is_given_up(now: list[float]) -> None:
    admission = admission_of()
    for left in (9, 8, 7):
        admission.output_waits(left)
        now[0] += STANDSTILL_SECONDS * 0.9
        admission.output_waits(left)
    now[0] += STANDSTILL_SECONDS * 0.2
    with pytest.raises(NoAnswerError, match="the broker has taken nothing for 120 s"):
        admission.output_waits(7)


def test_output_that_stands_still_is_given_up_soon_where_the_partition_is_to_be_given_up(now: list[float]) -> None:
    stop_signal = StopSignal()
    admission = admission_of(stop_signal=stop_signal)
    admission.output_waits(5)
    now[0] += STANDSTILL_WHEN_STOPPED_SECONDS * 1.1
    admission.output_waits(5)
    stop_signal.request("somebody stopped the task")
    with pytest.raises(NoAnswerError, match="the broker has taken nothing for 10 s"):
        admission.output_waits(5)


def looked_at(now: list[float], admission: Admission, times: int) -> None:
    """As long as the cluster is looked at so often, and nothing is taken."""
    admission.output_waits(5)
    for _ in range(times):
        now[0] += LOOK_SECONDS * 1.1
        admission.output_waits(5)


def test_a_producer_from_which_a_cluster_takes_nothing_though_it_is_well_is_given_up(now: list[float]) -> None:
    admission = admission_of(is_well=lambda: True)
    looked_at(now, admission, 1)
    with pytest.raises(ChunkFailedError, match="has taken nothing from this producer for 33 s"):
        looked_at(now, admission, 1)


def test_one_from_which_it_takes_something_is_not(now: list[float]) -> None:
    admission = admission_of(is_well=lambda: True)
    for left in (9, 8, 7):
        admission.output_waits(left)
        now[0] += LOOK_SECONDS * 1.1
        admission.output_waits(left)


def test_nor_is_one_that_the_cluster_holds_up_by_its_quota(now: list[float]) -> None:
    admission = admission_of(is_well=lambda: True)
    for _ in range(3):
        looked_at(now, admission, 1)
        admission.output_is_throttled(60.0)
        now[0] += 60


def test_a_cluster_that_has_just_come_back_may_take_its_time(now: list[float]) -> None:
    answers = [False, True, False, True]
    admission = admission_of(is_well=lambda: answers.pop(0))
    looked_at(now, admission, 4)
    assert answers == []
