"""Wait for the executors of a cluster, which start one by one after the driver is up."""

from __future__ import annotations

import time
from collections.abc import Callable

SETTLED_SECONDS = 1.0
LOOK_SECONDS = 0.1


def wait_for_executors(count: Callable[[], int], wanted: int, seconds: float) -> None:
    """Wait until `wanted` executors are there, but at most `seconds`.

    If their number is not configured (0), the last is the one that no other follows for a while.
    """
    found, now = 0, time.monotonic()
    since, end = now, now + seconds
    while now < end:
        there = count()
        if there != found:
            found, since = there, now
        if there >= wanted if wanted else there and now - since > SETTLED_SECONDS:
            return
        time.sleep(LOOK_SECONDS)
        now = time.monotonic()
