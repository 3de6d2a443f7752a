"""Plants faults in the product, one at a time, and looks for a schedule that notices each.

`python -m tests.simulation.planted` says which did.
"""

from __future__ import annotations

from tests.simulation.setting import settle_in

if __name__ == "__main__":
    settle_in()

import gc
import sys
from collections.abc import Mapping

import pytest

import tests.simulation.injection  # noqa: F401  # before anything of the product
from tests.interleaving.planted import PLANTED, Plant
from tests.simulation.workload.episode import Result, play
from tests.simulation.workload.script import draw

MOST_SCHEDULES = 200
FROM: Mapping[str, int] = {}
"""The first seed to try, by the name of the fault."""


def noticed(plant: Plant, first: int, most: int) -> Result | None:
    """The first schedule in which a promise is broken."""
    for seed in range(first, first + most):
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            result = play(draw(seed))
        if result.anomalies:
            return result
    return None


def main() -> int:
    unnoticed = 0
    for plant in PLANTED:
        name = plant.__name__
        found = noticed(plant, FROM.get(name, 0), MOST_SCHEDULES if name in FROM else 10 * MOST_SCHEDULES)
        gc.collect()
        unnoticed += found is None
        said = f"{found.script.seed} {found.anomalies[0].promise.name} {found.anomalies[0]}" if found else "not noticed"
        sys.stdout.write(f"{name}: {said}\n")
        sys.stdout.flush()
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
