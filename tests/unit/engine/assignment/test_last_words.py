from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from kpipe_engine.assignment import last_words
from kpipe_engine.assignment.assignment import Assignment
from kpipe_engine.assignment.events import PartitionEvents
from kpipe_engine.assignment.last_words import LastWords
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.errors import PartitionHaltedError


class Worker:
    """Stores why it stops, once it is open, unless it fails to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.stored: list[str] = []
        self.closed = threading.Event()
        self.answered = threading.Event()
        self.answered.set()
        self._is_open = self.is_abandoned = False
        self._failure = failure

    def open(self) -> None:
        self.answered.wait()
        self._is_open = True

    def run_chunks(self) -> None:
        assert self._is_open
        assert not self.closed.is_set()
        if self._failure:
            raise self._failure
        self.stored.append("why")

    def abandon(self) -> None:
        self.is_abandoned = True

    def close(self) -> None:
        self.closed.set()


def say_why(worker: Worker) -> Assignment:
    """Stop the only unsettled one of two ranges, and have the worker store that."""
    states = [RangeState(PartitionRange(each, 0, 10, None)) for each in range(2)]
    assignment = Assignment(states, PartitionEvents())
    assignment.claim()
    states[0].advance(10)
    states[0].mark_stored()

    def succeed(left: Sequence[RangeState], reason: str) -> Worker:
        assert (left, reason) == ([states[1]], "explained: broken")
        return worker

    LastWords(lambda stop: f"explained: {stop}", succeed).say(assignment, PartitionHaltedError("broken"))
    assert [state.reason for state in states] == [None, "explained: broken"]
    return assignment


def test_a_settled_worker_leaves_no_last_words() -> None:
    assignment = say_why(Worker())
    assignment[1].mark_stored()
    LastWords(str, lambda *_: pytest.fail("nothing is left to store")).say(assignment, PartitionHaltedError("late"))


def test_a_successor_stores_and_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker()
    say_why(worker)
    assert (worker.stored, worker.closed.is_set(), caplog.text) == (["why"], True, "")


def test_one_that_fails_costs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(PartitionHaltedError("the group may not be used"))
    say_why(worker)
    assert (worker.stored, worker.closed.is_set()) == ([], True)
    assert "cannot store the reason of stopped partitions: the group may not be used" in caplog.text


def test_one_that_is_late_is_left_to_itself(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_words, "SAY_SECONDS", 0.01)
    worker = Worker()
    worker.answered.clear()
    say_why(worker)
    assert "the broker did not answer within 0.01 s" in caplog.text
    # Nobody else touches the clients that its call is still in.
    assert (worker.stored, worker.closed.is_set(), worker.is_abandoned) == ([], False, True)
    worker.answered.set()
    assert worker.closed.wait(60)
    assert worker.stored == ["why"]
