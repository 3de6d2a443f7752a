"""Calls that may never return."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kpipe_engine import bounded_calls as deadline
from kpipe_engine.bounded_calls import BoundedCalls, close_all
from kpipe_engine.errors import NoAnswerError

MANY = 60.0


class Client:
    """Its calls return once `answers` is set."""

    def __init__(self) -> None:
        self.answers, self.closed = threading.Event(), threading.Event()

    def call(self) -> str:
        self.answers.wait(MANY)
        return "answer"

    def close(self) -> None:
        self.answers.wait(MANY)
        self.closed.set()


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    made.answers.set()


@pytest.fixture
def calls(client: Client) -> BoundedCalls:
    return BoundedCalls(client.close)


def test_a_call_is_made_and_its_answer_given(calls: BoundedCalls, client: Client) -> None:
    client.answers.set()
    assert calls.within(MANY, "asked", client.call) == "answer"
    calls.close()
    assert client.closed.is_set()


def test_the_error_of_a_call_is_raised(calls: BoundedCalls) -> None:
    def fail() -> None:
        raise LookupError("no coordinator")

    with pytest.raises(LookupError, match="no coordinator"):
        calls.within(MANY, "asked", fail)


def test_a_call_that_does_not_return_is_left_and_closes_the_client_when_it_does(
    calls: BoundedCalls, client: Client
) -> None:
    with pytest.raises(NoAnswerError, match=r"the broker did not answer within 0\.05 s when asked"):
        calls.within(0.05, "asked", client.call)
    # Nobody else touches the client while the call is out.
    calls.close()
    assert not client.closed.is_set()
    client.answers.set()
    assert client.closed.wait(MANY)


def test_clients_that_do_not_close_are_left_together(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "CLOSE_SECONDS", 0.05)
    good = Client()
    good.answers.set()
    close_all(client.close, client.close, good.close)
    assert good.closed.is_set()
    assert not client.closed.is_set()


def test_a_close_that_raises_is_nobodys_business() -> None:
    def fail() -> None:
        raise RuntimeError("closed already")

    close_all(fail)
