from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import pytest

from airflow_provider_kpipe.contract import kafka_names
from airflow_provider_kpipe.contract.kafka_names import (
    READER_GROUP,
    backfill_group_of,
    progress_group_of,
    redrive_group_of,
)
from tests.kit.permissions import asked_for

# What each function of the module makes for those who work in a group.
MADE: dict[str, Callable[[str], list[tuple[str, str]]]] = {
    "progress_group_of": lambda group: [("group", progress_group_of(group, slot)) for slot in (0, 1, 63)],
    "details_group_of": lambda group: [
        ("group", kafka_names.details_group_of(progress_group_of(group, slot))) for slot in (0, 2)
    ],
    "published_group_of": lambda group: [("group", kafka_names.published_group_of(group))],
    "sequence_group_of": lambda group: [("group", kafka_names.sequence_group_of(group))],
    "stop_group_of": lambda group: [("group", kafka_names.stop_group_of(group))],
    "writer_id_of": lambda group: [
        ("transactional id", kafka_names.writer_id_of(group, topic, 70, slot))
        for topic in ("orders", "orders.dead")
        for slot in (0, 3)
    ],
    "checkpoint_id_of": lambda group: [("transactional id", kafka_names.checkpoint_id_of(group))],
    "sequence_id_of": lambda group: [("transactional id", kafka_names.sequence_id_of(group))],
}
BACKFILL = backfill_group_of("orders", "scheduled__2026-01-01T00:00:00+00:00")
REDRIVE = redrive_group_of("orders.dead")


def made_in(group: str) -> Iterator[tuple[str, str]]:
    yield "group", group
    for make in MADE.values():
        yield from make(group)


@pytest.mark.parametrize(
    ("roles", "names"),
    [
        (["Pipeline"], list(made_in("orders"))),
        (["Pipeline", "Backfill"], list(made_in(BACKFILL))),
        (["Redrive"], [*made_in(REDRIVE), ("group", READER_GROUP)]),
    ],
    ids=["Pipeline", "Backfill", "Redrive"],
)
def test_the_page_about_permissions_covers_every_name(roles: list[str], names: list[tuple[str, str]]) -> None:
    grants = [grant for role in roles for grant in asked_for(role)]
    assert [each for each in names if not any(grant.covers(*each) for grant in grants)] == []


def test_the_names_above_are_all_there_are() -> None:
    makers = {name for name, _ in inspect.getmembers(kafka_names, inspect.isfunction) if name.endswith("_of")}
    elsewhere = {"backfill_group_of", "redrive_group_of", "ledger_of", "lease_id_of"}
    assert makers == {*MADE, *elsewhere}


def test_somebody_elses_names_are_not_covered() -> None:
    others = [*made_in("orders2"), *made_in("payments"), ("group", "kpipe.redrive.orders.dead2")]
    grants = [grant for role in ("Pipeline", "Backfill", "Redrive") for grant in asked_for(role)]
    assert [each for each in others if any(grant.covers(*each) for grant in grants)] == []


@pytest.mark.parametrize("group", ["orders", BACKFILL, REDRIVE, "a.b", "my.kpipe_orders"])
def test_a_group_name_identifies_its_committer(group: str) -> None:
    checkpoint = kafka_names.checkpoint_id_of(group)
    assert kafka_names.committer_to(group, "orders", 70) == checkpoint
    assert kafka_names.committer_to(kafka_names.published_group_of(group), "orders", 70) == checkpoint
    counter = kafka_names.sequence_group_of(group)
    assert kafka_names.committer_to(counter, "orders", 70) == kafka_names.sequence_id_of(group)
    for slot in (0, 1, 12):
        writer, progress = kafka_names.writer_id_of(group, "orders", 70, slot), progress_group_of(group, slot)
        assert kafka_names.committer_to(progress, "orders", 70) == writer
        assert kafka_names.committer_to(kafka_names.details_group_of(progress), "orders", 70) == writer
