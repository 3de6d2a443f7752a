"""A segment that a user ships by py_files."""

from __future__ import annotations

from typing import Any


def shout(record: Any) -> Any:
    record.value = record.value.upper()
    return record
