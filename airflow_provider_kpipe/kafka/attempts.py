"""Begins attempts at the run of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_kpipe.contract.offsets import NO_EPOCH
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.standing import Held, committed_beyond, is_superseded
from airflow_provider_kpipe.exceptions import StalePlanError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.kafka.sequence import draw_number
from airflow_provider_kpipe.kafka.truncation import refuse_truncated


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
    further = committed_beyond(plan, held)
    _check_not_truncated(positions, plan, held, further)
    number = draw_number(settings, plan.working_group, plan.topic, above=plan.number)
    return Attempt(number, further)


def _check_not_truncated(
    positions: Positions, plan: Plan, held: Mapping[int, Held], further: Mapping[int, int]
) -> None:
    """Refuse to go on where the checkpoint of an older plan has come since: its log may have been cut before this one
    was made."""
    planned = {each.partition: each.leader_epoch for each in plan.ranges}
    epochs = {each: held[each].leader_epoch for each in further}
    asked = {at: (further[at], epochs[at]) for at in further if epochs[at] not in (NO_EPOCH, planned[at])}
    refuse_truncated(positions.cluster, plan.working_group, plan.topic, asked)
