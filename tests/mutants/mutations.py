"""All mutations, and those that may survive, each with its reason."""

from __future__ import annotations

from tests.mutants import airflow, contract, engine, positions, workers
from tests.mutants.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    *contract.MUTATIONS,
    *positions.MUTATIONS,
    *engine.MUTATIONS,
    *workers.MUTATIONS,
    *airflow.MUTATIONS,
)

MOST_SURVIVORS = 3
SURVIVORS: dict[str, str] = {}
