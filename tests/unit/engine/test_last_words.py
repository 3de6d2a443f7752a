from __future__ import annotations

import threading

import pytest

from kpipe_engine import last_words
from kpipe_engine.errors import PartitionStoppedError
from kpipe_engine.last_words import say_why


class Worker:
    """Says what was asked of it, and what it was to do instead."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.asked: list[str] = []
        self.closed = threading.Event()
        self.waits = threading.Event()
        self.waits.set()
        self._failure = failure

    def open(self) -> None:
        self.asked.append("open")
        self.waits.wait()

    def run_chunks(self) -> None:
        self.asked.append("run")
        if self._failure:
            raise self._failure

    def close(self) -> None:
        self.asked.append("close")
        self.closed.set()


def test_a_successor_stores_and_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker()
    say_why(worker)
    assert (worker.asked, caplog.text) == (["open", "run", "close"], "")


def test_one_that_fails_costs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(PartitionStoppedError("the group may not be used"))
    say_why(worker)
    assert worker.asked[-1] == "close"
    assert "why partitions stop could not be stored: the group may not be used" in caplog.text


def test_one_that_is_late_is_left_to_itself(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_words, "SAY_SECONDS", 0.01)
    worker = Worker()
    worker.waits.clear()
    say_why(worker)
    assert "the broker did not answer within 0.01 s" in caplog.text
    assert worker.asked == ["open"]
    worker.waits.set()
    assert worker.closed.wait(10)
