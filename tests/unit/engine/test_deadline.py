"""Calls that may never return."""

from __future__ import annotations

import threading

import pytest

from kpipe_engine.deadline import returns_within


def test_a_call_is_made_once() -> None:
    made: list[int] = []
    assert returns_within(10, lambda: made.append(1))
    assert made == [1]


def test_what_a_call_raises_is_raised() -> None:
    def fail() -> None:
        raise LookupError("no coordinator")

    with pytest.raises(LookupError, match="no coordinator"):
        returns_within(10, fail)


def test_a_call_that_does_not_return_is_left() -> None:
    forever = threading.Event()

    def wait() -> None:
        forever.wait(60)

    assert not returns_within(0.05, wait)
    forever.set()
