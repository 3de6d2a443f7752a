"""Stands in for Airflow's task state store, which is there only inside a task."""

from __future__ import annotations

from datetime import timedelta
from typing import Any


class TaskState:
    """What Airflow keeps of a task beyond its tries."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}
        self.retentions: set[timedelta | None] = set()

    def get(self, key: str, default: Any = None) -> Any:
        return self.held.get(key, default)

    def set(self, key: str, value: Any, *, retention: timedelta | None = None) -> None:
        self.held[key] = value
        self.retentions.add(retention)
