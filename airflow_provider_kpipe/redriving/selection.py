"""Check that a redrive chooses existing dead letters: a slip in a form would redrive none, and look like success."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from airflow_provider_kpipe.contract.clean_text import cleaned
from airflow_provider_kpipe.contract.documents import OtherVersionError
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive.redrive import RedriveError, Selection
from airflow_provider_kpipe.kafka.bounded_reader import read_range
from airflow_provider_kpipe.redriving.preview import TEXT_CHARACTERS, letter_in

MOST_NAMES = 10


def check_selection(settings: Mapping[str, str], plan: Plan, selection: Selection) -> None:
    """Refuse a record, an exception class or another pipeline that no dead letter of the ranges has.

    It reads up to the first letter that matches. It ignores the time of failure: an hour may have had no failure. It
    accepts a topic without letters, unless the form names a record, which the user has seen there.
    """
    wanted = replace(selection, occurred_from=None, occurred_until=None)
    if wanted == Selection(pipeline=plan.pipeline) or wanted == Selection():
        return
    classes: Counter[str] = Counter()
    for planned in plan.ranges:
        for message in read_range(settings, plan.topic, planned):
            try:
                letter = letter_in(message)
            except OtherVersionError:
                # This version cannot read the letter, which may be the wanted one: the redrive reports it.
                return
            if letter is None:
                continue
            if wanted.covers(letter, message.timestamp()[1]):
                return
            classes[cleaned(f"{letter.fault.exception_class} of {letter.pipeline}", TEXT_CHARACTERS)] += 1
    if classes or wanted.record is not None:
        raise RedriveError(_nobody_has(wanted, plan.topic, classes))


def _nobody_has(wanted: Selection, topic: str, classes: Counter[str]) -> str:
    record = wanted.record
    said = {
        "record": record and f"{record.topic}-{record.partition}-{record.offset}",
        "exception_class": wanted.exception_class,
        "pipeline": wanted.pipeline,
    }
    chosen = " and ".join(f"{name}={value!r}" for name, value in said.items() if value is not None)
    found = ", ".join(f"{count:,} {name}" for name, count in classes.most_common(MOST_NAMES)) or "none"
    return (
        f"no dead letter in the range of {topic!r} has {chosen}: nothing was redriven. There are: {found}. Correct the "
        "form, or widen its offsets"
    )
