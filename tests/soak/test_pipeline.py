"""Each kind of record has the fate that the books expect of it, before a redrive and after."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_kpipe.testing import context_of, record_of
from tests.soak import run
from tests.soak.dags.soak_pipeline import PARKED, Sort, soak
from tests.soak.records import KINDS, Kind, kind_of, value_of

NUMBERS = {kind_of(number): number for number in range(400)}
REDRIVEN = [("kpipe-dead-letter-attempt", b"1")]


def fate(kind: Kind, run_key: str, headers: list[tuple[str, bytes]]) -> str:
    segment = Sort()
    segment.open(replace(context_of(), run_key=run_key))
    try:
        made = segment.process(record_of(value_of(NUMBERS[kind]), headers=headers))
    except (ValueError, KeyError):
        return "dead letter"
    return "filtered" if made is None else "written"


@pytest.mark.parametrize(
    ("run_key", "headers", "of_the_mendable"),
    [
        ("soak/run-7/soak.plan", [], "dead letter"),
        ("soak/run-7/soak.plan", REDRIVEN, "written"),
        ("soak_redrive/redrive-7/redrive", [], "written"),
    ],
    ids=["as it came", "back in the source", "through the segments"],
)
def test_a_record_has_the_fate_of_its_kind(
    run_key: str, headers: list[tuple[str, bytes]], of_the_mendable: str
) -> None:
    assert {kind: fate(kind, run_key, headers) for kind in KINDS} == {
        "good": "written",
        "unwanted": "filtered",
        "poison": "dead letter",
        "mendable": of_the_mendable,
    }


def test_the_topics_are_those_of_the_pipeline() -> None:
    assert soak.dead_letter is not None
    topics = (soak.source.topic, soak.destination.topic, soak.dead_letter.topic, PARKED)
    assert topics == (run.SOURCE, run.OUT, run.DEAD, run.PARKED)
    assert soak.group == run.GROUP
