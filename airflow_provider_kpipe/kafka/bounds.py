"""Time bounds for calls that have none in librdkafka; a call that exceeds its bound is left to itself."""

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
    """Make a call that may never return, such as a commit whose coordinator is gone.

    The call runs in a thread of its own. If it is late, this raises the error that librdkafka raises at its own bounds;
    the thread runs on until the call or the process ends.
    """
    return result_within(seconds, _begun(call))


def result_within(seconds: float, answer: Future[T]) -> T:
    """Return the result of a future within a bound: an admin client that waits for a leader never completes it."""
    try:
        return answer.result(max(0.0, seconds))
    except TooLateError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None


def let_go(*clients: Consumer | Producer) -> None:
    """Close clients, all at once, for at most `CLOSE_SECONDS`: one may wait for an answer to a commit or an abort."""
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
        except BaseException as error:  # noqa: BLE001  # the caller gets it
            answer.set_exception(error)

    threading.Thread(target=make, name="kpipe-bounded-call", daemon=True).start()
    return answer
