"""Calls that librdkafka gives no bound: they get one here, and are left to themselves beyond it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLateError
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

T = TypeVar("T")

CLOSE_SECONDS = 5.0


def within(seconds: float, call: Callable[[], T]) -> T:
    """Make a call that may never come back, such as a commit whose coordinator is gone.

    It is made in a thread of its own. A call that is late raises what librdkafka raises where it knows a bound; the
    thread goes on until the call ends, or the process does.
    """
    return result_within(seconds, _begun(call))


def result_within(seconds: float, answer: Future[T]) -> T:
    """The result of a future, which an admin client that waits for a leader never completes."""
    try:
        return answer.result(max(0.0, seconds))
    except TooLateError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None


def let_go(*clients: Consumer | Producer) -> None:
    """Close clients, all at once; one that waits for an answer to a commit, or to abort a transaction, is left after a
    while."""
    until = time.monotonic() + CLOSE_SECONDS
    for closing in [_begun(client.close) for client in clients]:
        try:
            result_within(until - time.monotonic(), closing)
        except KafkaException:
            continue


def _begun(call: Callable[[], T]) -> Future[T]:
    answer: Future[T] = Future()

    def make() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001  # whoever asked gets it
            answer.set_exception(error)

    threading.Thread(target=make, name="kpipe-bounded-call", daemon=True).start()
    return answer
