"""Begins attempts at the run of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.standing import committed_beyond, is_superseded
from airflow_provider_kpipe.exceptions import StalePlanError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.kafka.sequence import draw_number


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: a later one has a higher number."""

    number: int
    committed: Mapping[int, int]
    """Where the group that the run works in stands, in the partitions in which that is beyond the plan's start."""


def begin_attempt(settings: Mapping[str, str], plan: Plan) -> Attempt:
    """Draw a number that all attempts before are below, and see where the group stands by now.

    A plan from before somebody moved the group is refused once a newer run has gone on from there: what it would write
    is written, or was not wanted.
    """
    with Positions(settings) as positions:
        # First: of all that is asked here, only this names what ails a connection.
        positions.topic(plan.topic)
        held = positions.held(plan)
    for planned in plan.ranges:
        at = held.get(planned.partition)
        if at is not None and is_superseded(planned, plan, at):
            raise StalePlanError(
                f"group {plan.working_group!r} was moved in partition {planned.partition} since the plan was made, and "
                f"a newer run has gone on from there to {at.offset}: start a new run"
            )
    number = draw_number(settings, plan.working_group, plan.topic, above=plan.number)
    return Attempt(number, committed_beyond(plan, held))
