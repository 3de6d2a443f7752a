"""Makes a schedule that finds something short enough to be read: `python -m tests.simulation.shrink SEED`."""

from __future__ import annotations

from tests.simulation.setting import settle_in

if __name__ == "__main__":
    settle_in()

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import tests.simulation.injection  # noqa: F401  # before anything of the product
from tests.simulation.workload.episode import Result, play
from tests.simulation.workload.fates import Fate
from tests.simulation.workload.script import HANDLERS, Script, Setup, draw

T = TypeVar("T")

SIMPLER: Sequence[tuple[str, object]] = (
    ("partitions", 1),
    ("letters", 1),
    ("handler", "copy"),
    ("listens", False),
    ("tells", False),
    ("ends_open", False),
    ("relaxed", False),
    ("records", 10),
    ("records", 4),
)
OTHER_SCHEDULES = 4
"""How many orders of the same calls are tried where something is left out: any of them will do."""


@dataclass(frozen=True, slots=True)
class Case:
    """A schedule whose fates are a list, too."""

    script: Script
    fates: tuple[Fate, ...]

    def play(self) -> Result:
        return play(self.script, self.fates)


class Shrinking:
    """Leaves out what is not needed for the same promise to be broken."""

    def __init__(self, seed: int, tell: Callable[[str], None]) -> None:
        script = draw(seed)
        found = play(script)
        if not found.anomalies:
            raise SystemExit(f"seed {seed} breaks no promise")
        self.promise = found.anomalies[0].promise.name
        self.case, self.result = Case(script, tuple(found.fates)), found
        self._tell, self.tries = tell, 0

    def shrink(self) -> Result:
        while True:
            before = self.case
            self._setups()
            self._drop("steps", self.case.script.steps, lambda case, steps: _with(case, steps=steps))
            self._drop("aims", self.case.script.aims, lambda case, aims: _with(case, aims=aims))
            self._drop("fates", self.case.fates, lambda case, fates: replace(case, fates=fates))
            if self.case == before:
                return self.result

    def _drop(self, name: str, parts: Sequence[T], without: Callable[[Case, tuple[T, ...]], Case]) -> None:
        """Leave out halves, quarters and so on, down to one by one."""
        left, size = tuple(parts), max(1, len(parts) // 2)
        while left:
            at = 0
            while at < len(left):
                fewer = (*left[:at], *left[at + size :])
                if self._still(without(self.case, fewer)):
                    left = fewer
                else:
                    at += size
            if size == 1:
                break
            size //= 2
        self._tell(f"{len(left)} of {len(parts)} {name} are left after {self.tries} tries")

    def _setups(self) -> None:
        for name, value in SIMPLER:
            setup = self.case.script.setup
            if _is_simpler(setup, name, value):
                self._still(_with(self.case, setup=replace(setup, **{name: value})))  # type: ignore[arg-type]

    def _still(self, case: Case) -> bool:
        if case == self.case:
            return False
        first = case.script.schedule
        for schedule in (first, *range(first + 1, first + OTHER_SCHEDULES)):
            tried = _with(case, schedule=schedule)
            result = tried.play()
            self.tries += 1
            if self.promise in result.broken:
                self.case, self.result = tried, result
                return True
        return False


def _with(case: Case, **changes: object) -> Case:
    return replace(case, script=replace(case.script, **changes))  # type: ignore[arg-type]


def _is_simpler(setup: Setup, name: str, value: object) -> bool:
    if name == "relaxed" and HANDLERS[setup.handler][1] > 1:
        return False
    has = getattr(setup, name)
    # Of numbers, a larger one than was left already would go round in circles.
    return bool(has > value if name in ("partitions", "letters", "records") else has != value)


def shown(result: Result) -> Iterator[str]:
    """What happened, for people to read."""
    script = result.script
    yield f"{script.setup}"
    yield f"steps: {', '.join(f'{each.number} {each.kind}' for each in script.steps) or 'none'}"
    for at, who, *what in result.trace:
        yield f"{at:10} {who:32} {' '.join(map(str, what))}"
    for anomaly in result.anomalies:
        yield f"{anomaly.promise.name} {anomaly.promise.title}: {anomaly}"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or not arguments[0].isdecimal():
        say("usage: python -m tests.simulation.shrink SEED")
        return 2
    shrinking = Shrinking(int(arguments[0]), say)
    for line in shown(shrinking.shrink()):
        say(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
