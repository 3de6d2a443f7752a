"""Calls that may never return."""

from __future__ import annotations

import threading
from collections.abc import Callable


def returns_within(seconds: float, call: Callable[[], None]) -> bool:
    """Make the call, and raise what it raises; False when it has not come back in time, and is left to itself."""
    raised: list[Exception] = []

    def make() -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001  # it is raised where it is waited for
            raised.append(error)

    thread = threading.Thread(target=make, name="kpipe-call", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return False
    if raised:
        raise raised[0]
    return True
