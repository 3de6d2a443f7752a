"""The tasks for one record, the same functions for every contestant: standard library only."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

TAX_PERCENT = 119
BURN_TURNS = 6_000
WAIT_SECONDS = 0.005


def change(value: bytes) -> bytes:
    """Parse, change and serialize."""
    order = json.loads(value)
    order["amount"] *= TAX_PERCENT
    return json.dumps(order).encode()


def keep(value: bytes) -> bytes | None:
    """Parse, and let one of ten pass as it came."""
    return value if json.loads(value)["id"] % 10 == 0 else None


def burn(value: bytes) -> bytes:
    """Spend some 100 to 200 microseconds of a core, in Python."""
    total = 0
    for turn in range(BURN_TURNS):
        total += turn
    return value


def wait(value: bytes) -> bytes:
    """Spend the time of a call to another service, without using a core."""
    time.sleep(WAIT_SECONDS)
    return value


TASKS: dict[str, Callable[[bytes], bytes | None]] = {"json": change, "filter": keep, "burn": burn, "wait": wait}
