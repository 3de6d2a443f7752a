from __future__ import annotations

from typing import Any

from tests.torture.enough import shortfalls


def figures(effects: int, runs: int, redrives: int, judged: int) -> dict[str, Any]:
    return {
        "faults with an effect": effects,
        "runs": {"live": runs - redrives, **({"redrive": redrives} if redrives else {})},
        "failed runs after which readers were watched": {"judged": judged},
    }


def test_a_torture_that_did_its_share_lacks_nothing() -> None:
    assert list(shortfalls(figures(140, 60, 5, 30), 10)) == []


def test_one_that_did_little_is_named_thing_by_thing() -> None:
    assert list(shortfalls(figures(99, 29, 1, 4), 10)) == [
        "99 faults with an effect, and at least 100 come in 10 minutes: is the machine busy?",
        "29 runs, and at least 30 come in 10 minutes: is the machine busy?",
        "1 redrives, and at least 2 come in 10 minutes: is the machine busy?",
        "4 judged, and at least 5 come in 10 minutes: is the machine busy?",
    ]


def test_less_is_expected_of_a_shorter_one() -> None:
    assert list(shortfalls(figures(20, 6, 0, 1), 2)) == []
    assert len(list(shortfalls(figures(19, 5, 0, 0), 2))) == 3
