"""The books notice each way in which a soak can go wrong, planted one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.soak.accounts import Accounts, Found, Letter, Told, told_by_checkpoint, told_by_redrive
from tests.soak.records import kind_of

COUNT = 1_000
GOOD, UNWANTED, POISON, MENDABLE = 0, 3, 137, 11
MENDED_BY_SOURCE, MENDED_BY_OUTPUT = 11, (112, 213, 314, 415, 516, 617, 718, 920)


def ids(*kinds: str) -> tuple[int, ...]:
    return tuple(number for number in range(COUNT) if kind_of(number) in kinds)


def sound() -> Accounts:
    """All mendable records went back, one of them through the source topic; of the poison, one is parked."""
    poison = ids("poison")
    found = Found(
        fresh=tuple(range(COUNT)),
        returned=(MENDED_BY_SOURCE, poison[0]),
        written=ids("good", "mendable"),
        dead=(*(Letter(number, 1) for number in ids("poison", "mendable")), Letter(poison[0], 2)),
        parked=(Letter(poison[0], 2),),
    )
    checkpoints = Told(
        read=COUNT + 2,
        written=len(found.written) - len(MENDED_BY_OUTPUT),
        dead_lettered=len(found.dead),
        filtered=len(ids("unwanted")),
    )
    return Accounts(COUNT, found, checkpoints, Told(written=len(MENDED_BY_OUTPUT), returned=2, parked=1), lag=0)


def with_found(**changes: Callable[[Any], tuple[Any, ...]]) -> Accounts:
    accounts = sound()
    changed: dict[str, Any] = {name: change(getattr(accounts.found, name)) for name, change in changes.items()}
    return replace(accounts, found=replace(accounts.found, **changed))


def test_sound_books_have_no_miss() -> None:
    assert ids("mendable") == (MENDED_BY_SOURCE, *MENDED_BY_OUTPUT)
    assert sound().misses == []
    assert sound().fates == {
        "produced": 1_000,
        "written": 977,
        "dead-lettered": 3,
        "filtered": 20,
        "redriven to the source": 2,
        "redriven to the output": 8,
        "duplicates": 0,
    }


@pytest.mark.parametrize(
    ("accounts", "named"),
    [
        (with_found(written=lambda old: old[1:]), "1 records are good, and lost: 0"),
        (with_found(written=lambda old: (*old, GOOD)), "1 records are twice in the output: 0"),
        (with_found(written=lambda old: (*old, UNWANTED)), "1 records are unwanted, and in the wrong topic: 3"),
        (with_found(written=lambda old: (*old, POISON)), "1 records are poison, and in the wrong topic: 137"),
        (
            with_found(written=lambda old: tuple(each for each in old if each != MENDABLE)),
            "1 records are mendable, and lost: 11",
        ),
        (
            with_found(dead=lambda old: tuple(each for each in old if each.id != 538)),
            "1 records are poison, and lost: 538",
        ),
        (with_found(dead=lambda old: (*old, Letter(GOOD, 1))), "1 records are good, and in the wrong topic: 0"),
        (with_found(dead=lambda old: (*old, old[0])), "twice in the dead letters with one attempt: Letter(id=11"),
        (with_found(parked=lambda old: (*old, *old)), "1 records are twice among the parked: 137"),
        (with_found(fresh=lambda old: old[1:]), "1 records are not in the source topic: 0"),
        (with_found(fresh=lambda old: (*old, old[0])), "1 records are twice in the source topic: 0"),
        (with_found(fresh=lambda old: (*old, COUNT)), "never sent, and in the source topic: 1000"),
        (with_found(returned=lambda old: old[1:]), "told as put back: 1 and 2"),
        (replace(sound(), lag=7), "lag of the group = 0: 7 and 0"),
    ],
)
def test_a_record_that_went_wrong_is_named(accounts: Accounts, named: str) -> None:
    assert [each for each in accounts.misses if named in each], accounts.misses


@pytest.mark.parametrize("name", ["read", "written", "dead_lettered", "filtered", "skipped", "lost", "parked"])
def test_a_checkpoint_that_counts_one_too_many_is_noticed(name: str) -> None:
    accounts = sound()
    checkpoints = replace(accounts.checkpoints, **{name: getattr(accounts.checkpoints, name) + 1})
    assert replace(accounts, checkpoints=checkpoints).misses


def test_a_record_written_twice_is_a_duplicate() -> None:
    assert with_found(written=lambda old: (*old, GOOD)).duplicates == 1


def test_many_records_are_named_by_the_first_few() -> None:
    (lost,) = [each for each in with_found(written=lambda old: ()).misses if "good, and lost" in each]
    assert lost == "968 records are good, and lost: 0, 1, 10, 100, 101 and more"


def test_the_documents_of_tasks_are_summed_over_their_partitions() -> None:
    counts = {"read": 10, "written": 7, "dead_lettered": 2, "filtered": 1, "skipped": 0, "lost": 0, "retried": 3}
    document = {"partitions": [{"counts": counts}, {"counts": {**counts, "lost": 1}}]}
    assert told_by_checkpoint(document) == Told(20, 14, 0, 4, 2, 0, 1)
    redrive = {"written": 5, "dead_lettered": 1, "outcomes": {"parked": 2, "redriven": 6}}
    assert told_by_redrive({"target": "source", **redrive}) == Told(returned=5, dead_lettered=1, parked=2)
    assert told_by_redrive({"target": "output", **redrive}) == Told(written=5, dead_lettered=1, parked=2)
