from __future__ import annotations

from itertools import islice, pairwise

import pytest

from tests.torture.schedule import BROKER_AWAY, RECOVERY_SECONDS, WEIGHTS, draw_faults

SEEDS = range(20)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_replays_its_faults(seed: int) -> None:
    assert list(draw_faults(seed, 300)) == list(draw_faults(seed, 300))


def test_a_longer_torture_begins_as_a_shorter_one_does() -> None:
    short = list(draw_faults(1, 120))
    assert list(islice(draw_faults(1, 600), len(short))) == short


def test_other_seeds_draw_other_faults() -> None:
    assert len({tuple(draw_faults(seed, 60)) for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_broker_is_away_at_a_time(seed: int) -> None:
    away = [each for each in draw_faults(seed, 1800) if each.kind in BROKER_AWAY]
    assert len(away) > 15
    assert [(one, other) for one, other in pairwise(away) if one.at + one.seconds + RECOVERY_SECONDS > other.at] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_there_are_ten_faults_a_minute_and_more(seed: int) -> None:
    faults = list(draw_faults(seed, 1800))
    assert len(faults) >= 10 * 30
    assert {each.kind for each in faults} == set(WEIGHTS)
