"""A segment that takes its time over one record."""

from __future__ import annotations

import json
import time
from typing import Any

SLOW = 5
SECONDS = 1.0


def slow_in_the_middle(record: Any) -> Any:
    if json.loads(record.value)["id"] == SLOW:
        time.sleep(SECONDS)
    return record
