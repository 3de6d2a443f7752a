"""Time limit on calls that may never return."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from kpipe_engine.errors import NoAnswerError

log = logging.getLogger("kpipe.kafka")

T = TypeVar("T")

# An abort may take half of it.
CLOSE_SECONDS = 20.0


class BoundedCalls:
    """Bounded calls to one client, each with a time limit.

    A late call is abandoned. From then on, only its thread touches the client, and closes it if the call returns after
    all. The next client to be opened has fenced this one by then.
    """

    def __init__(self, close: Callable[[], object]) -> None:
        self._close = close
        self._is_left = False
        self._lock = threading.Lock()

    def within(self, seconds: float, doing: str, call: Callable[[], T]) -> T:
        """Return or raise the call's outcome, or raise NoAnswerError after the limit; `doing` is for its message."""
        given: list[T] = []
        raised: list[Exception] = []
        ended = False

        def make() -> None:
            nonlocal ended
            try:
                given.append(call())
            except Exception as error:  # noqa: BLE001  # it is raised where it is waited for
                raised.append(error)
            with self._lock:
                ended, is_left = True, self._is_left
            if is_left:
                _quietly(self._close)

        _started(make).join(seconds)
        with self._lock:
            if not ended:
                self._is_left = True
                raise NoAnswerError(f"the broker did not answer within {seconds:g} s when {doing}")
        if raised:
            raise raised[0]
        return given[0]

    def close(self) -> None:
        """Close the client, unless a late call still has it."""
        if not self._is_left:
            close_all(self._close)


def close_all(*closings: Callable[[], object]) -> None:
    """Make all of the calls at once, and abandon those that take too long."""
    until = time.monotonic() + CLOSE_SECONDS
    for thread in [_started(_quietly, close) for close in closings]:
        thread.join(max(0.0, until - time.monotonic()))


def _started(target: Callable[..., object], *args: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, name="kpipe-call", daemon=True)
    thread.start()
    return thread


def _quietly(close: Callable[[], object]) -> None:
    try:
        close()
    except Exception as error:  # noqa: BLE001  # no caller waits for it, and nothing could be done about it
        log.debug("a client was not closed as it should be: %s", error)
