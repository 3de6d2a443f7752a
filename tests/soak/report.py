"""What a soak says in the end: a table, the misses, and a few figures to keep. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.soak.fit import Line, Verdict
from tests.soak.peaks import KEPT, Judged
from tests.soak.roles import SERVICES

# Without them, nothing was soaked. Others live too short to be seen in every run.
HAVE_TO_BE_SEEN = (*SERVICES, "task", "jvm", "driver", "python worker", KEPT)
_HEAD = ("role", "", "first", "last", "a run adds", "(bound)", "at most", "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that a soak has found."""

    commit: str
    minutes: float
    runs: int
    redrives: int
    every_seconds: float
    """From the start of one run to that of the next, in the middle."""
    fates: Mapping[str, int]
    judged: Sequence[Judged]
    other_misses: Sequence[str] = field(default=())
    """All but leaks: what does not add up, is not green, or is left behind."""

    @property
    def misses(self) -> list[str]:
        return [*self.other_misses, *_leaks(self.judged), *_unseen(self.judged)]


def table(judged: Iterable[Judged]) -> str:
    """A row for each role and measure."""
    rows = [_HEAD, *map(_row, judged)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def verdict(outcome: Outcome) -> str:
    """The last words of a soak."""
    fates = ", ".join(f"{count:,} {name}" for name, count in outcome.fates.items())
    lines = [
        f"{outcome.minutes:.1f} minutes, {outcome.runs} runs, one every {outcome.every_seconds:.0f} s, and "
        f"{outcome.redrives} redrives beside them.",
        f"Records: {fates}.",
    ]
    lines += [f"Too noisy to be called flat: {each}." for each in _noisy(outcome.judged)]
    if outcome.misses:
        return "\n".join([*lines, f"{len(outcome.misses)} MISSES:", *(f"  {each}" for each in outcome.misses)])
    return "\n".join([*lines, "No leak is found, nothing is left, and everything adds up."])


def figures(outcome: Outcome) -> str:
    """JSON, to be kept and compared."""
    document: dict[str, Any] = {
        "commit": outcome.commit,
        "minutes": round(outcome.minutes, 1),
        "runs": outcome.runs,
        "redrives": outcome.redrives,
        "seconds from run to run": round(outcome.every_seconds, 1),
        "records": dict(outcome.fates),
        "grows by run": {},
        "misses": outcome.misses,
        "flat": sum(each.fit.verdict == "flat" for each in outcome.judged),
        "too noisy to be called flat": list(_noisy(outcome.judged)),
    }
    for each in outcome.judged:
        if each.fit.line is not None:
            document["grows by run"].setdefault(each.role, {})[each.measure] = {
                "first": round(each.fit.first, 1),
                "last": round(each.fit.last, 1),
                "slope": round(each.fit.line.slope, 3),
                "at most": round(each.fit.line.high, 3),
                "bound": round(each.fit.bound, 3),
                "verdict": each.fit.verdict,
            }
    return json.dumps(document, indent=2) + "\n"


def _row(each: Judged) -> tuple[str, ...]:
    line = each.fit.line
    slopes = ("", "", "") if line is None else (f"{line.slope:+.3f}", f"({each.fit.bound:.2f})", f"{line.high:+.3f}")
    return (each.role, each.measure, f"{each.fit.first:,.1f}", f"{each.fit.last:,.1f}", *slopes, each.fit.verdict)


def _leaks(judged: Iterable[Judged]) -> Iterable[str]:
    return _growing(judged, "leak", lambda line: f" (at least {line.low:.2f})")


def _noisy(judged: Iterable[Judged]) -> Iterable[str]:
    return _growing(judged, "noisy", lambda line: f", at most by {line.high:.2f}")


def _growing(judged: Iterable[Judged], verdict: Verdict, limit: Callable[[Line], str]) -> Iterable[str]:
    """Name each series with this verdict, how much it grows, and how far that is certain."""
    for each in judged:
        if each.fit.verdict == verdict and (line := each.fit.line) is not None:
            grows = f"{each.role}: {each.measure} grow by {line.slope:.2f} a run"
            yield f"{grows}{limit(line)}, and may by {each.fit.bound:.2f}"


def _unseen(judged: Sequence[Judged]) -> Iterable[str]:
    for role in HAVE_TO_BE_SEEN:
        if all(each.fit.verdict == "too short" for each in judged if each.role == role):
            yield f"{role}: seen in too few runs after the warm-up to say anything: soak for longer"
