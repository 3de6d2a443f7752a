"""What production has held at most in each run, role by role, and whether that grows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tests.soak.fit import Bound, Fit, fit
from tests.soak.processes import Process
from tests.soak.roles import PASSING, SERVICES
from tests.soak.sampler import Sample

Series: TypeAlias = list[float | None]
Measure: TypeAlias = str

MEMORY, HANDLES, THREADS, PROCESSES = "memory (MB)", "handles", "threads", "processes"
KEPT = "kept"
"""The role of what is no process: files, groups, topics."""
WARM_UP = 0.25
"""Of the runs, this share: caches fill, pools grow to their size."""
FEWEST_WARM = 3

BOUNDS: Mapping[Measure, Bound] = {
    MEMORY: Bound(per_run=0.5, per_hour=90),
    HANDLES: Bound(per_run=0.2, per_hour=36),
    THREADS: Bound(per_run=0.2, per_hour=36),
    PROCESSES: Bound(per_run=0.2, per_hour=36),
}
OF_WHAT_IS_KEPT = Bound(per_run=0.2, per_hour=36)

_OF_SERVICES: Mapping[Measure, Callable[[Sequence[Process]], float]] = {
    MEMORY: lambda all_of_it: sum(each.pss for each in all_of_it) / 1024,
    HANDLES: lambda all_of_it: sum(each.handles for each in all_of_it),
    THREADS: lambda all_of_it: sum(each.threads for each in all_of_it),
    PROCESSES: len,
}
_OF_PASSING: Mapping[Measure, Callable[[Sequence[Process]], float]] = {
    MEMORY: lambda all_of_it: max(each.peak for each in all_of_it) / 1024,
    HANDLES: lambda all_of_it: max(each.handles for each in all_of_it),
    THREADS: lambda all_of_it: max(each.threads for each in all_of_it),
}


@dataclass(frozen=True, slots=True)
class Judged:
    """One row of the table."""

    role: str
    measure: Measure
    fit: Fit


def by_run(samples: Iterable[Sample], starts: Sequence[float], end: float) -> list[list[Sample]]:
    """The samples of each run: from its start to that of the next, the last one's to the end."""
    bounds = [*starts, end]
    runs: list[list[Sample]] = [[] for _ in starts]
    for sample in samples:
        place = sum(sample.at >= bound for bound in bounds) - 1
        if 0 <= place < len(runs):
            runs[place].append(sample)
    return runs


def judge(runs: Sequence[Sequence[Sample]], runs_per_hour: float) -> list[Judged]:
    """Every series after the warm-up."""
    warm = runs[max(FEWEST_WARM, round(len(runs) * WARM_UP)) :]
    judged = []
    for (role, measure), series in _series(warm).items():
        bound = OF_WHAT_IS_KEPT if role == KEPT else BOUNDS[measure]
        judged.append(Judged(role, measure, fit(series, bound.of_a_run(runs_per_hour))))
    return judged


def _series(runs: Sequence[Sequence[Sample]]) -> dict[tuple[str, Measure], Series]:
    """The most there was in each run: what is there only between two of them, or only in them, moves no line."""
    series: dict[tuple[str, Measure], Series] = {}
    for roles, measures in ((SERVICES, _OF_SERVICES), (PASSING, _OF_PASSING)):
        for role in roles:
            for measure, measured in measures.items():
                series[role, measure] = [_most(run, role, measured) for run in runs]
    kept = sorted({name for run in runs for sample in run for name in sample.counts})
    for name in kept:
        series[KEPT, name] = [max((each.counts[name] for each in run), default=None) for run in runs]
    return {what: each for what, each in series.items() if any(value is not None for value in each)}


def _most(run: Sequence[Sample], role: str, measured: Callable[[Sequence[Process]], float]) -> float | None:
    of_role = ([each for each in sample.processes if each.role == role] for sample in run)
    return max((float(measured(each)) for each in of_role if each), default=None)
