"""What a form of a redrive asks for, over real dead letters: whether there are any."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_kpipe.contract.dead_letters.dead_letter import Coordinates
from airflow_provider_kpipe.contract.offsets.limits import Explicit
from airflow_provider_kpipe.contract.redrive.redrive import RedriveError
from airflow_provider_kpipe.redriving.selection import check_selection
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.redrives import order
from tests.kit.topics import Sent, fill, numbered


@pytest.fixture(scope="module")
def bench(broker: SandboxBroker) -> Bench:
    """Records 1, 3, 5, 7 and 9 are dead letters, for a ValueError; between them is what is none."""
    made = Bench.make(broker.bootstrap_servers, segments=["faulty_kit:odd_ones_fail"])
    fill(made.bootstrap, made.topic, numbered(10))
    fill(made.bootstrap, made.dead, [Sent(b"no dead letter")])
    plan = made.plan()
    made.work(plan)
    return made


def check(bench: Bench, **how: Any) -> None:
    made = order(bench, dry_run=True, **{"pipeline": bench.pipeline.name, **how})
    check_selection(bench.settings, made.plan, made.redrive.selection)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"pipeline": None},
        {"exception_class": "ValueError"},
        {"exception_class": "ValueError", "occurred_from": 4_000_000_000_000},
        {"occurred_until": 5},
    ],
    ids=repr,
)
def test_existing_letters_may_be_chosen(bench: Bench, how: dict[str, Any]) -> None:
    check(bench, **how)


def test_a_record_that_died_may_be_chosen(bench: Bench) -> None:
    check(bench, record=Coordinates(bench.topic, 0, 9))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"exception_class": "ValueEror"}, "has exception_class='ValueEror' and pipeline="),
        ({"exception_class": "KeyError", "pipeline": None}, "has exception_class='KeyError': nothing was redriven"),
        ({"pipeline": "ordrs"}, "has pipeline='ordrs': nothing was redriven"),
    ],
    ids=repr,
)
def test_a_choice_without_letters_is_refused_with_the_existing_ones(
    bench: Bench, how: dict[str, Any], said: str
) -> None:
    with pytest.raises(RedriveError, match=said) as refused:
        check(bench, **how)
    assert f"There are: 5 ValueError of {bench.pipeline.name}." in str(refused.value)


def test_a_record_that_did_not_die_is_refused(bench: Bench) -> None:
    with pytest.raises(RedriveError, match=f"has record='{bench.topic}-0-4' and pipeline="):
        check(bench, record=Coordinates(bench.topic, 0, 4))


def test_only_the_range_that_was_chosen_counts(bench: Bench) -> None:
    how: dict[str, Any] = {"start": Explicit({0: 0}), "record": Coordinates(bench.topic, 0, 9)}
    with pytest.raises(RedriveError, match="or widen its offsets"):
        check(bench, end=Explicit({0: 3}), **how)


def test_an_empty_topic_refuses_only_the_choice_of_a_record(broker: SandboxBroker) -> None:
    quiet = Bench.make(broker.bootstrap_servers)
    check(quiet, exception_class="ValueError")
    with pytest.raises(RedriveError, match="There are: none"):
        check(quiet, record=Coordinates(quiet.topic, 0, 1))
