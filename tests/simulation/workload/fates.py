"""What befalls whom at which call: drawn, aimed at, or given as a list."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple


class Fate(NamedTuple):
    """One thing that befalls a task at a call."""

    task: str
    call: int
    """Of the task, counted from 0; of its batches, from -1 downwards."""
    kind: str
    """crash, crash after, lost, late, reply lost, passing, refused, or freeze."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Rates:
    """How often something befalls a call by chance."""

    crash: float = 0.0
    lost: float = 0.0
    freeze: float = 0.0
    passing: float = 0.0
    refused: float = 0.0
    """How often the broker refuses what is produced."""
    late: float = 0.0
    """Of what is lost on its way, how much arrives after all."""

    def times(self, rate: float) -> Rates:
        return replace(
            self,
            crash=self.crash * rate,
            lost=self.lost * rate,
            freeze=self.freeze * rate,
            passing=self.passing * rate,
            refused=self.refused * rate,
        )


class Aim(NamedTuple):
    """A fate for one kind of task at one kind of call."""

    kind: str
    call: str
    nth: int
    """Of the calls of that kind in one task."""
    which: int
    """Of the tasks of that kind that come so far."""
    fate: str
    seconds: float


class Fates:
    """Each task has chance of its own: what befalls one does not depend on the others.

    :param given: nothing but these, where they are given
    """

    def __init__(self, seed: int, rates: Rates, aims: Sequence[Aim], given: Collection[Fate] | None = None) -> None:
        self._seed, self.rates, self._aims = seed, rates, list(aims)
        self._given = None if given is None else {(each.task, each.call): each for each in given}
        self._is_drawn = any((rates.crash, rates.lost, rates.freeze, rates.passing))
        self._chance: dict[str, random.Random] = {}
        self._calls: Counter[str] = Counter()
        self._alike: Counter[tuple[str, str]] = Counter()
        self._came: Counter[int] = Counter()
        self.taken: list[Fate] = []
        self.over = False
        """Whether nothing goes wrong any more."""

    def of(self, task: str, kind: str, call: str) -> Fate | None:
        """Say what befalls this call of a task."""
        if self.over:
            return None
        number = self._calls[task]
        self._calls[task] = number + 1
        if self._given is not None:
            found = self._given.get((task, number))
        else:
            found = self._aimed(task, kind, call, number) or self._drawn(task, number)
        if found is not None:
            self.taken.append(found)
        return found

    def of_batch(self, task: str) -> Fate | None:
        """Say whether the broker refuses a batch of a task."""
        if self.over:
            return None
        number = self._calls[f"{task} batches"]
        self._calls[f"{task} batches"] = number + 1
        fate = Fate(task, -1 - number, "refused")
        if self._given is not None:
            struck = (task, -1 - number) in self._given
        else:
            struck = self.rates.refused > 0 and self._chance_of(task).random() < self.rates.refused
        if struck:
            self.taken.append(fate)
        return fate if struck else None

    def _chance_of(self, task: str) -> random.Random:
        chance = self._chance.get(task)
        if chance is None:
            chance = self._chance[task] = random.Random(f"{self._seed} {task}")
        return chance

    def _drawn(self, task: str, number: int) -> Fate | None:
        if not self._is_drawn:
            return None
        chance = self._chance_of(task)
        rates, x = self.rates, chance.random()
        if x >= 2 * rates.crash + rates.lost + rates.freeze + rates.passing:
            return None
        if x < rates.crash:
            return Fate(task, number, "crash")
        if (x := x - rates.crash) < rates.crash:
            return Fate(task, number, "crash after")
        if (x := x - rates.crash) < rates.lost:
            if chance.random() < 0.5:
                return Fate(task, number, "reply lost", chance.choice((0.01, 1.0, 10.0, 40.0)))
            kind = "late" if chance.random() < rates.late else "lost"
            return Fate(task, number, kind, chance.choice((0.01, 1.0, 10.0, 40.0)))
        if x - rates.lost < rates.passing:
            return Fate(task, number, "passing")
        return Fate(task, number, "freeze", chance.choice((2.0, 20.0, 70.0, 200.0)))

    def _aimed(self, task: str, kind: str, call: str, number: int) -> Fate | None:
        for at, aim in enumerate(self._aims):
            if aim.kind != kind or call != aim.call:
                continue
            alike = self._alike[task, aim.call]
            self._alike[task, aim.call] += 1
            if alike != aim.nth:
                return None
            self._came[at] += 1
            if self._came[at] - 1 == aim.which:
                return Fate(task, number, aim.fate, aim.seconds)
            return None
        return None
