"""Fields that forms have in common. Airflow checks neither dates nor offsets: these do, with messages for users."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_provider_kpipe.contract.offsets.limits import At, Explicit, parse_limit

EMPTY: tuple[Any, ...] = (None, "", [], {})


class FormError(ValueError):
    """Invalid value in a form; the message is for the user who filled it in."""


def refuse_unknown(form: Mapping[str, Any], fields: tuple[str, ...]) -> None:
    unknown = sorted(set(form) - set(fields))
    if unknown:
        raise FormError(f"The field {unknown[0]!r} is not known. Known are: {', '.join(fields)}.")


def moment(name: str, value: Any) -> At:
    try:
        limit = parse_limit(value.strip() if isinstance(value, str) else None, name)
    except ValueError:
        limit = None
    if not isinstance(limit, At):
        raise FormError(
            f"{name} is {value!r}, which is not a date and time. Write it like 2026-01-31T12:00:00+00:00 "
            "(without an offset it is UTC)."
        )
    return limit


def offset_range(form: Mapping[str, Any]) -> tuple[Explicit | None, Explicit | None]:
    """Return start_offsets and end_offsets; None for a field that is left empty."""
    start, end = (
        None if form.get(name) in EMPTY else offset_per_partition(name, form[name])
        for name in ("start_offsets", "end_offsets")
    )
    if start and end:
        for partition in sorted(start.offsets.keys() ^ end.offsets.keys()):
            raise FormError(
                f"Partition {partition} is in only one of start_offsets and end_offsets. Name it in both, or in none."
            )
        for partition, first in start.offsets.items():
            if end.offsets[partition] <= first:
                raise FormError(
                    f"Partition {partition} ends at {end.offsets[partition]}, which is not after its start {first}. "
                    "The end is the offset after the last record wanted."
                )
    return start, end


def offset_per_partition(name: str, value: Any) -> Explicit:
    try:
        document = json.loads(value, object_pairs_hook=each_name_once) if isinstance(value, str) else value
        limit = parse_limit(document, name)
    except ValueError as error:
        raise FormError(f'{name} cannot be read: {error}. Write it like {{"0": 1200, "1": 900}}.') from error
    if not isinstance(limit, Explicit):
        raise FormError(f'{name} is {value!r}. Write an offset per partition, like {{"0": 1200, "1": 900}}.')
    return limit


def each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that occurs twice. For json.loads, which would silently keep the last value."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} is named twice, with {found[name]!r} and with {value!r}: keep one")
        found[name] = value
    return found


def yes_or_no(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise FormError(f"{name} is {value!r}. Choose true or false.")
    return value


def number_from_one(name: str, value: Any) -> int | None:
    """Return a whole number from 1, or None for a field that is left empty."""
    if value in EMPTY:
        return None
    if isinstance(value, (bool, float)) or not str(value).isdecimal() or int(value) < 1:
        raise FormError(f"{name} is {value!r}. Write a whole number from 1, or leave it empty for no limit.")
    return int(value)
