"""A redrive as a user asks for it in a form, checked field by field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_kpipe.contract.dead_letters.dead_letter import Coordinates
from airflow_provider_kpipe.contract.offsets.limits import Earliest, Latest, OffsetLimit
from airflow_provider_kpipe.contract.redrive.redrive import TARGETS, RedriveError, RedriveTarget, Selection
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
    "occurred_from",
    "occurred_until",
    "exception_class",
    "pipeline",
    "record",
    "start_offsets",
    "end_offsets",
    "target",
    "max_attempts",
    "each_letter",
    "dry_run",
)
ANY_PIPELINE = "*"
_RECORD = re.compile(r"([A-Za-z0-9._-]+)[-:/]([0-9]{1,10})[-:/]([0-9]{1,19})")


@dataclass(frozen=True, slots=True)
class RedriveRequest:
    """The dead letters to choose, the range of their topic, and the way to redrive them."""

    selection: Selection
    start: OffsetLimit
    end: OffsetLimit
    target: RedriveTarget
    max_attempts: int | None
    each_letter: bool
    dry_run: bool

    @classmethod
    def from_form(
        cls,
        form: Mapping[str, Any],
        *,
        pipeline: str,
        target: RedriveTarget,
        max_attempts: int | None,
        each_letter: bool = False,
    ) -> RedriveRequest:
        """Read a request from a form; the other arguments, from the DAG, apply to fields that the form does not set."""
        refuse_unknown(form, FIELDS)
        start, end = offset_range(form)
        if "max_attempts" in form:
            max_attempts = number_from_one("max_attempts", form["max_attempts"])
        return cls(
            selection=_selection(form, pipeline),
            start=start or Earliest(),
            end=end or Latest(),
            target=target_of(form.get("target"), target),
            max_attempts=max_attempts,
            each_letter=yes_or_no("each_letter", form.get("each_letter", each_letter)),
            dry_run=yes_or_no("dry_run", form.get("dry_run", False)),
        )


def check_start(start: Mapping[str, Any], **operator: Any) -> None:
    """Raise if the defaults of a form are invalid, or would override an argument of the operator.

    :param operator: `target`, `max_attempts` and `each_letter`; None for one that is not given
    """
    said = {name: value for name, value in operator.items() if value is not None}
    for name, value in (*said.items(), *start.items()):
        _check_value(name, value)
    # An empty target chooses none; an empty max_attempts chooses no limit.
    overridden = {
        name: start[name]
        for name, value in said.items()
        if name in start and str(start[name]) != str(value) and not (name == "target" and start[name] in EMPTY)
    }
    if overridden:
        raise RedriveError(
            f"the operator says {_arguments({name: said[name] for name in overridden})}, but the form of its DAG "
            f"starts with {_arguments(overridden)}, which would count in a run that was started with nothing filled "
            f"in: write redrive_params({_arguments(said)}) in the params of the DAG, or leave it out of the operator"
        )


def _check_value(name: str, value: Any) -> None:
    """Refuse a value that no run could accept: it would fail each run that leaves it as it is."""
    match name:
        case "occurred_from" | "occurred_until":
            _moment(name, value)
        case "start_offsets" | "end_offsets":
            offset_range({name: value})
        case "exception_class" | "pipeline":
            _text(name, value)
        case "record":
            _record(value)
        case "target":
            target_of(value, "source")
        case "max_attempts":
            number_from_one(name, value)
        case "each_letter" | "dry_run":
            yes_or_no(name, value)


def _moment(name: str, value: Any) -> int | None:
    return None if value in EMPTY else moment(name, value).timestamp_ms


def _arguments(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _selection(form: Mapping[str, Any], pipeline: str) -> Selection:
    wanted = _text("pipeline", form.get("pipeline")) or pipeline
    occurred_from, occurred_until = (_moment(name, form.get(name)) for name in ("occurred_from", "occurred_until"))
    if occurred_from is not None and occurred_until is not None and occurred_until <= occurred_from:
        raise FormError(
            f"The time ends ({form['occurred_until']}) before it starts ({form['occurred_from']}). "
            "occurred_until has to be later than occurred_from."
        )
    return Selection(
        pipeline=None if wanted == ANY_PIPELINE else wanted,
        exception_class=_text("exception_class", form.get("exception_class")),
        occurred_from=occurred_from,
        occurred_until=occurred_until,
        record=_record(form.get("record")),
    )


def _text(name: str, value: Any) -> str | None:
    if value in EMPTY:
        return None
    if not isinstance(value, str):
        raise FormError(f"{name} is {value!r}. Write a name.")
    return value.strip() or None


def _record(value: Any) -> Coordinates | None:
    text = _text("record", value)
    if text is None:
        return None
    found = _RECORD.fullmatch(text)
    if found is None:
        raise FormError(
            f"record is {value!r}, which names no record. Write topic, partition and offset, like orders-3-1042."
        )
    topic, partition, offset = found.groups()
    return Coordinates(topic, int(partition), int(offset))


def target_of(value: Any, otherwise: RedriveTarget) -> RedriveTarget:
    if value in EMPTY:
        return otherwise
    for target in TARGETS:
        if value == target:
            return target
    raise FormError(f"target is {value!r}. Choose {' or '.join(TARGETS)}.")
