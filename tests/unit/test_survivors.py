"""Each mutation is tried by the simulation, or has a reason why not; and each reason is about one that there is."""

from __future__ import annotations

from tests.mutants.mutations import MUTATIONS
from tests.simulation.mutants import SIMULATED
from tests.simulation.survivors import SURVIVORS, UNSIMULATED


def test_only_mutations_of_what_is_simulated_have_a_reason_to_survive() -> None:
    assert set(SURVIVORS) <= {each.name for each in MUTATIONS if each.file in SIMULATED}


def test_each_mutation_is_tried_or_a_reason_says_why_not() -> None:
    mutated = {each.file for each in MUTATIONS}
    assert set(UNSIMULATED) == mutated - set(SIMULATED)
