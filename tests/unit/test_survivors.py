"""Each reason why the simulation does not notice a mutation is about a mutation that there is."""

from __future__ import annotations

from tests.mutants.mutations import MUTATIONS
from tests.simulation.mutants import SIMULATED
from tests.simulation.survivors import SURVIVORS


def test_only_mutations_of_what_is_simulated_have_a_reason_to_survive() -> None:
    assert set(SURVIVORS) <= {each.name for each in MUTATIONS if each.file in SIMULATED}
