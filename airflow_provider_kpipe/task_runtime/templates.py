"""Arguments as templates give them: as text, even if a number, a list or an object is meant."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from airflow_provider_kpipe.forms.fields import each_name_once

EMPTY: tuple[Any, ...] = (None, "", "None")
_MARKS = ("{{", "{%", "{#")


def is_template(value: Any) -> bool:
    """Tell whether Airflow replaces the value when the task runs, such as text in braces or another task's output."""
    if isinstance(value, str):
        return any(mark in value for mark in _MARKS)
    if isinstance(value, Mapping):
        return any(map(is_template, value.values()))
    if isinstance(value, (list, tuple, set)):
        return any(map(is_template, value))
    return callable(value) or hasattr(value, "resolve")


def rendered(value: Any) -> Any:
    """Parse text that is JSON; return everything else as it is."""
    if not isinstance(value, str) or not value.strip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value, object_pairs_hook=each_name_once)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{value!r} looks like JSON, but is none: {error}; a template gives JSON with `| tojson` behind its name"
        ) from error


def whole_number(value: Any, name: str) -> int | None:
    if value in EMPTY:
        return None
    if isinstance(value, str) and value.strip().removeprefix("-").isdecimal():
        return int(value)
    if type(value) is int:
        return value
    raise ValueError(f"{name} is {value!r}: a whole number is needed")


def whole_numbers(value: Any, name: str) -> tuple[int, ...] | None:
    """Read whole numbers from a list, one number, or text such as "0, 2" and "[0, 2]"."""
    value = rendered(value)
    if value in EMPTY:
        return None
    if isinstance(value, str):
        value = [part for part in value.replace(",", " ").split() if part]
    if not isinstance(value, Iterable):
        value = [value]
    numbers = [whole_number(part, name) for part in value]
    if None in numbers:
        raise ValueError(f"{name} is {value!r}: whole numbers are needed")
    return tuple(number for number in numbers if number is not None)
