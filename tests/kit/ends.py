"""Calls that have to come to an end."""

from __future__ import annotations

import threading
from collections.abc import Callable

LONGEST_SECONDS = 120.0


def ended(name: str, step: Callable[[], object]) -> BaseException | None:
    """What a step raises. It runs in a thread of its own: a call that never comes back would hold up all tests."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001  # whatever it is, it is looked at by the test
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LONGEST_SECONDS)
    assert not thread.is_alive(), f"{name} does not end"
    return raised[0] if raised else None
