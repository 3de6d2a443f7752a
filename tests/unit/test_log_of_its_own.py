"""A call that a worker of one test has abandoned may still have something to say in the next."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

import pytest

log = logging.getLogger("kpipe")


@pytest.fixture(scope="module")
def comes_late() -> Iterator[Callable[[], None]]:
    """Lets a thread of an earlier test say something."""
    may_say = threading.Event()

    def say() -> None:
        may_say.wait()
        log.warning("said late")

    thread = threading.Thread(target=say)
    thread.start()

    def let_it_say() -> None:
        may_say.set()
        thread.join()

    yield let_it_say
    let_it_say()


def test_a_test_finds_in_its_log_what_it_and_its_own_threads_have_said(
    comes_late: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    comes_late()
    log.warning("said here")
    own = threading.Thread(target=log.warning, args=["said by a thread"])
    own.start()
    own.join()
    assert caplog.messages == ["said here", "said by a thread"]
