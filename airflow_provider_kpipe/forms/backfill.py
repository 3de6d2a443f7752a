"""A backfill as a user asks for it in a form, checked field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_kpipe.contract.offsets.limits import Explicit, Latest, OffsetLimit
from airflow_provider_kpipe.forms.fields import (
    EMPTY,
    FormError,
    moment,
    number_from_one,
    offset_range,
    refuse_unknown,
    yes_or_no,
)

FIELDS = (
    "window_start",
    "window_end",
    "start_offsets",
    "end_offsets",
    "partitions",
    "max_records",
    "dry_run",
    "publish",
)


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """A time window, or offsets per partition."""

    start: OffsetLimit
    end: OffsetLimit
    partitions: tuple[int, ...] | None
    max_records: int | None
    dry_run: bool
    publish: bool

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> BackfillRequest:
        refuse_unknown(form, FIELDS)
        start, end = _limits(form)
        partitions = _partitions(form.get("partitions"))
        if isinstance(start, Explicit):
            _check_named(partitions or (), start)
        return cls(
            start=start,
            end=end,
            partitions=partitions,
            max_records=number_from_one("max_records", form.get("max_records")),
            dry_run=yes_or_no("dry_run", form.get("dry_run", False)),
            publish=yes_or_no("publish", form.get("publish", False)),
        )


def check_start(start: Mapping[str, Any]) -> None:
    """Refuse default values of a form that no run could accept."""
    for name in ("window_start", "window_end"):
        if start.get(name) not in EMPTY:
            moment(name, start[name])
    offset_range(start)
    _partitions(start.get("partitions"))
    number_from_one("max_records", start.get("max_records"))
    for name in ("dry_run", "publish"):
        yes_or_no(name, start.get(name, False))


def _limits(form: Mapping[str, Any]) -> tuple[OffsetLimit, OffsetLimit]:
    window = [name for name in ("window_start", "window_end") if form.get(name) not in EMPTY]
    offsets = [name for name in ("start_offsets", "end_offsets") if form.get(name) not in EMPTY]
    if window and offsets:
        raise FormError(
            f"Both {window[0]} and {offsets[0]} are filled in. Choose a time window or offsets, and empty the others."
        )
    if "window_start" in window:
        return _window(form)
    start, end = offset_range(form)
    if start is not None:
        return start, end or Latest()
    raise FormError(
        "Nothing says where to start. Fill in window_start (a date and time), "
        'or start_offsets (an offset per partition, such as {"0": 1200}).'
    )


def _check_named(partitions: tuple[int, ...], start: Explicit) -> None:
    for partition in partitions:
        if partition not in start.offsets:
            raise FormError(
                f"partitions names {partition}, and start_offsets does not. Give it an offset there, or leave it out."
            )


def _window(form: Mapping[str, Any]) -> tuple[OffsetLimit, OffsetLimit]:
    start = moment("window_start", form["window_start"])
    end: OffsetLimit = Latest()
    if form.get("window_end") not in EMPTY:
        end = moment("window_end", form["window_end"])
        if end.timestamp_ms <= start.timestamp_ms:
            raise FormError(
                f"The window ends ({form['window_end']}) before it starts ({form['window_start']}). "
                "window_end has to be later than window_start."
            )
    return start, end


def _partitions(value: Any) -> tuple[int, ...] | None:
    if value in EMPTY or (isinstance(value, str) and not value.strip()):
        return None
    parts = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(parts, list):
        parts = [parts]
    if not parts:
        raise FormError(f"partitions is {value!r}, which names none. Write whole numbers, like 0, 2, 5.")
    numbers = []
    for part in parts:
        if isinstance(part, (bool, float)) or not str(part).isdecimal():
            raise FormError(f"partitions has {part!r}, which is not a partition. Write whole numbers, like 0, 2, 5.")
        numbers.append(int(part))
    return tuple(sorted(set(numbers)))
