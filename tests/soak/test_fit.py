"""The fit tells a leak from noise: leaks are planted in series of every kind of noise that a soak has."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from tests.soak.fit import FEWEST, Bound, fit, line_through

# A MB or a handle a run has to be found: half of it is the bound.
BOUND = 0.5
SEEDS = range(20)


def flat(random: Random, runs: int, noise: float) -> list[float]:
    return [100 + random.gauss(0, noise) for _ in range(runs)]


def in_two_levels(random: Random, runs: int, noise: float) -> list[float]:
    """As memory is that is now shared with a child, and now not."""
    return [100 + random.choice((0.0, 4 * noise)) for _ in range(runs)]


def with_spikes(random: Random, runs: int, noise: float) -> list[float]:
    """As every fifth run is that has a redrive beside it."""
    return [100 + random.gauss(0, noise) + (40 if run % 5 == 4 else 0) for run in range(runs)]


def in_whole_numbers(random: Random, runs: int, noise: float) -> list[float]:
    """As handles are, of which there are now some more and now some less."""
    return [20.0 + random.randrange(round(3 * noise)) for _ in range(runs)]


def never_changing(random: Random, runs: int, noise: float) -> list[float]:
    return [17.0] * runs


def with_one_step(random: Random, runs: int, noise: float) -> list[float]:
    """As a pool is that has once grown by one, in the middle."""
    return [17.0 + (run >= runs // 2) for run in range(runs)]


KINDS = [flat, in_two_levels, with_spikes, in_whole_numbers, never_changing, with_one_step]


def leaking(series: Sequence[float], per_run: float) -> list[float]:
    return [value + per_run * run for run, value in enumerate(series)]


@pytest.mark.parametrize("made", KINDS)
@pytest.mark.parametrize("runs", [10, 35])
def test_a_flat_noisy_series_is_no_leak(made: object, runs: int) -> None:
    for seed in SEEDS:
        series = made(Random(seed), runs, noise=1.0)  # type: ignore[operator]
        assert fit(series, BOUND).verdict in ("flat", "noisy"), series


@pytest.mark.parametrize("made", KINDS)
@pytest.mark.parametrize("per_run", [1.0, 5.0])
def test_a_planted_leak_of_one_in_each_run_is_found(made: object, per_run: float) -> None:
    for seed in SEEDS:
        series = leaking(made(Random(seed), 35, noise=1.0), per_run)  # type: ignore[operator]
        assert fit(series, BOUND).verdict == "leak", series


def test_also_in_a_short_soak() -> None:
    for seed in SEEDS:
        assert fit(leaking(flat(Random(seed), 10, noise=0.5), 1.0), BOUND).verdict == "leak"


def test_a_leak_of_one_in_every_third_run_is_found_by_a_bound_below_it() -> None:
    series = [20.0 + run // 3 for run in range(35)]
    assert fit(series, 0.2).verdict == "leak"
    assert fit(series, 0.5).verdict == "flat"


def test_a_falling_line_is_no_leak() -> None:
    assert fit(leaking(flat(Random(1), 35, noise=1.0), -2.0), BOUND).verdict == "flat"


def test_noise_that_could_hide_a_leak_is_told_from_flat() -> None:
    series = flat(Random(3), 10, noise=30.0)
    assert fit(series, BOUND).verdict == "noisy"
    assert fit([each / 100 for each in series], BOUND).verdict == "flat"


def test_a_series_of_few_runs_says_nothing() -> None:
    assert fit([1.0] * (FEWEST - 1), BOUND).verdict == "too short"
    assert fit([], BOUND).verdict == "too short"
    assert fit([1.0] * FEWEST, BOUND).verdict == "flat"


def test_a_run_of_which_nothing_is_known_changes_no_slope() -> None:
    whole = leaking([10.0] * 20, 2.0)
    some = [None if run % 3 == 1 else value for run, value in enumerate(whole)]
    assert line_through(some).slope == line_through(whole).slope == 2.0
    assert fit(some, BOUND).runs == 13


def test_the_line_is_the_median_of_all_slopes_and_lies_in_its_interval() -> None:
    assert line_through([0.0, 2.0, 4.0, 6.0, 8.0, 10.0]).slope == 2.0
    line = line_through([0.0, 2.0, 4.0, 600.0, 8.0, 10.0, 12.0])
    assert line.slope == 2.0
    assert line.low <= 2.0 <= line.high


def test_the_interval_holds_the_true_slope_nearly_always() -> None:
    held = 0
    for seed in range(200):
        line = line_through(leaking(flat(Random(seed), 20, noise=3.0), 1.0))
        held += line.low <= 1.0 <= line.high
    # Each side is missed once in a hundred times.
    assert held >= 190


def test_a_bound_is_the_stricter_of_that_by_run_and_that_by_hour() -> None:
    assert Bound(per_run=0.5, per_hour=60).of_a_run(180) == pytest.approx(1 / 3)
    assert Bound(per_run=0.5, per_hour=60).of_a_run(60) == 0.5
