"""Begins attempts at the run of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.kafka.sequence import draw_number


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: a later one has a higher number."""

    number: int
    committed: Mapping[int, int]
    """Where the group that the run works in stands, in the partitions in which that is beyond the plan's start."""


def begin_attempt(settings: Mapping[str, str], plan: Plan) -> Attempt:
    """Draw a number that all attempts before are below, and see where the group stands by now."""
    with Positions(settings) as positions:
        # First: of all that is asked here, only this names what ails a connection.
        positions.topic(plan.topic)
        number = draw_number(settings, plan.working_group, plan.topic, above=plan.number)
        return Attempt(number, positions.committed_beyond(plan))
