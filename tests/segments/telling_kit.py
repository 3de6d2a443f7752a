"""Segments that tell much of what they do, and of why they do not."""

from __future__ import annotations

import json
from typing import Any

from airflow_provider_kpipe.segments import LONGEST_COUNTER_NAME, MOST_COUNTERS

# As long as they may be, in letters of three bytes.
NAMES = [f"{number:02d}{'帳' * ((LONGEST_COUNTER_NAME - 2) // 3)}" for number in range(MOST_COUNTERS)]


class Tells:
    """Counts under long names, and refuses every tenth record for a reason of its own, which is long too."""

    def open(self, context: Any) -> None:
        self._count = context.count

    def process(self, record: Any) -> Any:
        number = json.loads(record.value)["id"]
        if number % 10 == 0:
            raise type(f"Error{number}{'誤' * 60}", (Exception,), {})("り" * 600)
        for name in NAMES:
            self._count(name)
        return record

    def close(self) -> None:
        """Nothing is held."""


def refuse_some(record: Any) -> Any:
    number = json.loads(record.value)["id"]
    if number % 10 == 0:
        raise ValueError(f"{number} is round")
    if number % 10 == 7:
        raise KeyError(number)
    return record
