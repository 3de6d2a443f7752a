"""Segments and a mapper for tests of dead letters, found by import path as a user's are."""

from __future__ import annotations

import json
from typing import Any


def as_ticket(letter: Any) -> Any:
    ticket = {"title": letter.fault.message, "record": f"{letter.source.topic}@{letter.source.offset}"}
    return letter.key, json.dumps(ticket).encode(), [*letter.headers, ("ticket", b"open")]


def as_it_is(letter: Any) -> Any:
    return letter.key, letter.value, letter.headers


def refuse(record: Any) -> Any:
    raise RuntimeError("once more")


def lament(record: Any) -> Any:
    """Raises at length, in letters of three and four bytes, and some that no UTF-8 encodes."""
    raise ValueError("帳\ud800😀" * 5_000)
