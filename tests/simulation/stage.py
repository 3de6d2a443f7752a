"""The one simulation of this process, for what stands in for a module and is given nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.kafka.cluster import Cluster
    from tests.simulation.scheduler import Simulation


class Stage:
    """Holds whatever is simulated now. A new cluster takes it."""

    simulation: Simulation
    cluster: Cluster

    def clear(self) -> None:
        """Let go of what was simulated, so that it can be collected."""
        del self.simulation, self.cluster


STAGE = Stage()
