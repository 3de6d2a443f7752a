from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.kafka import bounds
from airflow_provider_kpipe.kafka.bounds import let_go, result_within, within


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """An event that comes only after the test, for the threads that are left to themselves."""
    event = threading.Event()
    yield event
    event.set()


def code_of(raised: pytest.ExceptionInfo[KafkaException]) -> int:
    error: KafkaError = raised.value.args[0]
    return error.code()


def test_a_call_in_time_returns_its_result_or_raises_its_own_error() -> None:
    assert within(60, lambda: "done") == "done"
    with pytest.raises(ZeroDivisionError):
        within(60, lambda: 1 // 0)


def test_a_call_runs_in_a_thread_that_ends_no_process() -> None:
    thread = within(60, threading.current_thread)
    assert thread is not threading.current_thread()
    assert thread.daemon


def test_a_call_that_is_late_raises_the_clients_own_error(never: threading.Event) -> None:
    with pytest.raises(KafkaException) as raised:
        within(0.01, never.wait)
    assert code_of(raised) == KafkaError._TIMED_OUT


@pytest.mark.parametrize("seconds", [0, -5])
def test_a_bound_that_is_over_takes_only_an_answer_that_is_there(seconds: float) -> None:
    answer: Future[str] = Future()
    with pytest.raises(KafkaException) as raised:
        result_within(seconds, answer)
    assert code_of(raised) == KafkaError._TIMED_OUT
    answer.set_result("there")
    assert result_within(seconds, answer) == "there"


class FakeClient:
    """Closes once everything that it waits for has come."""

    def __init__(self, *awaited: threading.Event) -> None:
        self.awaited, self.is_closing, self.is_closed = awaited, threading.Event(), threading.Event()

    def close(self) -> None:
        self.is_closing.set()
        for each in self.awaited:
            each.wait()
        self.is_closed.set()


def test_clients_close_at_once() -> None:
    """Each of the two closes only while the other one does."""
    one: Any = FakeClient()
    other: Any = FakeClient(one.is_closing)
    one.awaited = (other.is_closing,)
    let_go(one, other)
    assert one.is_closed.is_set()
    assert other.is_closed.is_set()


def test_a_client_that_does_not_close_holds_up_nobody(never: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CLOSE_SECONDS", 0.01)
    stuck: Any = FakeClient(never)
    let_go(stuck)
    assert stuck.is_closing.wait(60)
    assert not stuck.is_closed.is_set()
