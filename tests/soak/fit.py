"""A robust line through a noisy series, and whether the series leaks. Pure."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

# One-sided: a flat series is above it once in a hundred times, and has to be above the bound besides.
Z = 2.326
FEWEST = 6

Verdict: TypeAlias = Literal["flat", "noisy", "leak", "too short"]


@dataclass(frozen=True, slots=True)
class Bound:
    """How much of something a run may add at most, and how much an hour may."""

    per_run: float
    per_hour: float

    def of_a_run(self, runs_per_hour: float) -> float:
        """The stricter of both."""
        return min(self.per_run, self.per_hour / runs_per_hour)


@dataclass(frozen=True, slots=True)
class Line:
    """Theil and Sen's line: the median of the slopes of all pairs, and between which slopes the true one is."""

    slope: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Fit:
    """A series by run, and what is to be thought of it."""

    first: float
    last: float
    runs: int
    line: Line | None
    bound: float
    """How much of it a run may add."""

    @property
    def verdict(self) -> Verdict:
        """A leak is above the bound, and not by chance. What is noisy could hide one above the bound."""
        if self.line is None:
            return "too short"
        if self.line.slope > self.bound and self.line.low > 0:
            return "leak"
        return "noisy" if self.line.high > self.bound else "flat"


def fit(series: Sequence[float | None], bound: float) -> Fit:
    """Draw the line through a series whose values are one run apart; None is a run of which nothing is known."""
    known = [value for value in series if value is not None]
    line = line_through(series) if len(known) >= FEWEST else None
    edge = max(1, min(3, len(known) // 2))
    first, last = (statistics.median(part) if part else 0.0 for part in (known[:edge], known[-edge:]))
    return Fit(first, last, len(known), line, bound)


def line_through(series: Sequence[float | None]) -> Line:
    """Fit by Theil and Sen; the interval is Sen's, from how many pairs rise and fall by chance."""
    points = [(run, value) for run, value in enumerate(series) if value is not None]
    slopes = sorted((later - earlier) / (there - here) for (here, earlier), (there, later) in combinations(points, 2))
    count, spread = len(slopes), Z * math.sqrt(_variance([value for _, value in points]))
    low = slopes[max(0, math.floor((count - spread) / 2) - 1)]
    high = slopes[min(count - 1, math.ceil((count + spread) / 2))]
    return Line(statistics.median(slopes), low, high)


def _variance(series: Sequence[float]) -> float:
    """Kendall's, of the number of pairs that rise minus those that fall; equal values make it smaller."""
    ties = sum(_weight(count) for count in Counter(series).values() if count > 1)
    return (_weight(len(series)) - ties) / 18


def _weight(count: int) -> int:
    return count * (count - 1) * (2 * count + 5)
