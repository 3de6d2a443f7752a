"""A leak that is planted in the processes of one role is found in the samples, and in no other role."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from tests.soak.peaks import BOUNDS, HANDLES, KEPT, MEMORY, PROCESSES, THREADS, Judged, by_run, judge
from tests.soak.processes import Process
from tests.soak.sampler import Sample

RUNS, LOOKS, EVERY = 30, 10, 20.0
MB = 1024
Plant = Callable[[int, Process], Process]


def looks_of(run: int, plant: Plant, random: Random) -> list[Sample]:
    """A scheduler that shares its memory in half of the looks; and in some of them a task, whose process is new."""
    looks = []
    for look in range(LOOKS):
        shared = random.choice((0, 5 * MB))
        processes = [
            Process(1, "scheduler", 200 * MB - shared + random.randrange(MB), 150 * MB, 300 * MB, 20, 8),
            Process(2, "executor", 50 * MB, 40 * MB, 100 * MB, 10 + random.randrange(3), 2),
            Process(3, "executor", 50 * MB, 40 * MB, 100 * MB, 10, 2),
        ]
        if look in (3, 4):
            peak = 150 * MB + random.randrange(2 * MB)
            processes.append(Process(100 + run, "task", 60 * MB, 50 * MB, peak, 12, 3))
        planted = tuple(plant(run, each) for each in processes)
        looks.append(Sample(run * EVERY + look * EVERY / LOOKS, planted, {"groups": 4}))
    return looks


def judged(plant: Plant = lambda run, each: each, seed: int = 1) -> list[Judged]:
    random = Random(seed)
    samples = [each for run in range(RUNS) for each in looks_of(run, plant, random)]
    runs = by_run(samples, [run * EVERY for run in range(RUNS)], RUNS * EVERY)
    return judge(runs, 3600 / EVERY)


def leaks(rows: list[Judged]) -> list[tuple[str, str]]:
    return [(each.role, each.measure) for each in rows if each.fit.verdict == "leak"]


def in_role(role: str, change: Plant) -> Plant:
    return lambda run, each: change(run, each) if each.role == role else each


def test_production_that_is_flat_has_no_leak() -> None:
    for seed in range(5):
        rows = judged(seed=seed)
        assert leaks(rows) == []
        assert {(each.role, each.measure) for each in rows} == {
            *((role, what) for role in ("scheduler", "executor") for what in (MEMORY, HANDLES, THREADS, PROCESSES)),
            *(("task", what) for what in (MEMORY, HANDLES, THREADS)),
            (KEPT, "groups"),
        }


@pytest.mark.parametrize("role", ["scheduler", "executor"])
@pytest.mark.parametrize(
    ("measure", "change"),
    [
        (MEMORY, lambda run, each: replace(each, pss=each.pss + run * MB)),
        (HANDLES, lambda run, each: replace(each, handles=each.handles + run)),
        (THREADS, lambda run, each: replace(each, threads=each.threads + run)),
    ],
)
def test_a_service_that_leaks_one_in_each_run_is_named(role: str, measure: str, change: Plant) -> None:
    assert leaks(judged(in_role(role, change))) == [(role, measure)]


@pytest.mark.parametrize(
    ("measure", "change"),
    [
        (MEMORY, lambda run, each: replace(each, peak=each.peak + run * MB)),
        (HANDLES, lambda run, each: replace(each, handles=each.handles + run)),
        (THREADS, lambda run, each: replace(each, threads=each.threads + run)),
    ],
)
def test_tasks_of_which_each_needs_more_than_the_one_before_are_named(measure: str, change: Plant) -> None:
    assert leaks(judged(in_role("task", change))) == [("task", measure)]


def test_growth_during_the_warm_up_is_no_leak() -> None:
    def warming(run: int, each: Process) -> Process:
        return replace(each, pss=each.pss + min(run, 6) * 20 * MB, handles=each.handles + min(run, 6))

    assert leaks(judged(in_role("scheduler", warming))) == []


def test_each_run_has_its_own_samples() -> None:
    samples = [Sample(at, (), {}) for at in (0.0, 9.9, 10.0, 19.0, 20.0, 31.0, 40.0)]
    runs = by_run(samples, starts=[10.0, 20.0, 30.0], end=40.0)
    assert [[each.at for each in run] for run in runs] == [[10.0, 19.0], [20.0], [31.0]]


def test_a_sample_is_read_back_as_it_was() -> None:
    (sample, *_) = looks_of(0, lambda run, each: each, Random(1))
    assert Sample.from_line(sample.to_line()) == sample


def test_the_bounds_are_below_what_has_to_be_found() -> None:
    """A MB, a handle and a thread a run, at a run every 20 s."""
    assert all(bound.of_a_run(180) <= 0.5 for bound in BOUNDS.values())
