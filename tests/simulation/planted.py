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
from tests.interleaving.planted import PLANTED, Plant, at_least_once_stores_over_a_later_run
from tests.simulation.shrink import Shrinking
from tests.simulation.workload.episode import Result, play
from tests.simulation.workload.script import draw

MOST_SCHEDULES = 200
FROM: Mapping[str, int] = {
    "a_reset_is_not_noticed": 10,
    "a_checkpoint_does_not_look_where_the_group_is": 70,
    "checkpoints_do_not_fence_each_other": 4030,
    "nobody_looks_after_a_failure": 20,
    "leases_are_ignored": 50,
    "pieces_of_a_run_before_are_not_fenced": 390,
}
"""The first seed to try, where it is not the very first."""
# Nothing fences in at least once: who stands still between its look and its store stores over a later run in any case.
AGREED_TO = (at_least_once_stores_over_a_later_run,)


def noticed(plant: Plant, first: int, most: int) -> Result | None:
    """The first schedule in which a promise is broken."""
    for seed in range(first, first + most):
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            result = play(draw(seed))
        if result.anomalies:
            return result
    return None


def shrunk(plant: Plant, found: Result) -> str:
    """Make the schedule that noticed a fault short, and say of how many lines its trace is now."""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        shorter = Shrinking(found.script.seed, lambda _: None).shrink()
    assert found.anomalies[0].promise.name in shorter.broken
    return f"{len(found.trace)} lines, shrunk to {len(shorter.trace)}"


def main() -> int:
    unnoticed = 0
    for plant in (each for each in PLANTED if each not in AGREED_TO):
        name = plant.__name__
        found = noticed(plant, FROM.get(name, 0), MOST_SCHEDULES)
        gc.collect()
        unnoticed += found is None
        said = f"{found.script.seed} {found.anomalies[0].promise.name} {found.anomalies[0]}" if found else "not noticed"
        if found:
            said = f"{said}; {shrunk(plant, found)}"
        sys.stdout.write(f"{name}: {said}\n")
        sys.stdout.flush()
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
