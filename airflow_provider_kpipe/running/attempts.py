"""Attempts at the run of a plan, and the checks at the start of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from airflow_provider_kpipe.contract.kafka_names import sequence_group_of
from airflow_provider_kpipe.contract.offsets.ranges import NO_EPOCH
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.resuming import committed_beyond, is_superseded, unknown_partitions
from airflow_provider_kpipe.contract.progress.standing import Held
from airflow_provider_kpipe.exceptions import StalePlanError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.planning.truncation import refuse_truncated
from airflow_provider_kpipe.transactions.sequence import draw_number


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: a later one has a higher number."""

    number: int
    checkpointed: tuple[int, ...]
    """The partitions in which a checkpoint has committed more than the plan knows of."""


def begin_attempt(settings: Mapping[str, str], plan: Plan) -> Attempt:
    """Draw a number above those of all earlier attempts, and read the group's present offsets.

    Refuse the plan if the group was moved after it was made, and a newer run has resumed there: the plan's records are
    written already, or were not wanted. Refuse it also if the broker has forgotten the progress of its run.
    """
    with Positions(settings) as positions:
        # This comes first: of all requests here, only this one names the cause if a connection fails.
        topic = positions.topic(plan.topic)
        checkpoints = positions.checkpoints(plan)
        further = committed_beyond(plan, checkpoints)
        if topic.id == plan.topic_id:
            # The stored progress of a topic is deleted with it, and the code that reads the topic reports that.
            _check_remembered(positions, plan, further)
        highest = _highest_number(positions, plan)
    for planned in plan.ranges:
        if is_superseded(planned, plan, checkpoints[planned.partition]):
            raise StalePlanError(
                f"group {plan.working_group!r} was moved in partition {planned.partition} since the plan was made, and "
                "a newer run has gone on from there: start a new run"
            )
    _check_not_truncated(positions, plan, further)
    number = draw_number(settings, plan.working_group, plan.topic, above=highest)
    return Attempt(number, tuple(further))


def _check_remembered(positions: Positions, plan: Plan, further: Collection[int]) -> None:
    """Refuse a plan whose number the broker has forgotten, if the progress of its run is unknown by now.

    The plan's number was stored before any progress of its run, so the broker forgets it first. As long as it is
    there, a range without stored progress was not begun.
    """
    if positions.group_offsets(sequence_group_of(plan.working_group), plan.topic, [0]):
        return
    slots: dict[int, set[int]] = {}
    for planned in plan.pending:
        for piece in planned.pieces:
            slots.setdefault(piece.slot, set()).add(piece.partition)
    stored = {slot: positions.stored_so_far(plan.progress_group(slot), plan.topic, at) for slot, at in slots.items()}
    unknown = unknown_partitions(plan, stored, further)
    if unknown:
        raise StalePlanError(
            f"the stored offsets of run {plan.run_key!r} have expired in partitions {unknown} "
            "(offsets.retention.minutes, 7 days by default), and its records would be written again; check which "
            "outputs exist, and start a new run for the rest"
        )


def _highest_number(positions: Positions, plan: Plan) -> int:
    """Return the highest number of the plan and of the attempts that have stored progress.

    The counter may have expired or been deleted since. An attempt that drew an earlier number again would leave its
    partitions to the earlier attempt.
    """
    partitions = [each.partition for each in plan.ranges]
    stored = positions.stored_so_far(plan.progress_group(), plan.topic, partitions)
    return max([plan.number, *(each.progress.lease.attempt for each in stored.values())])


def _check_not_truncated(positions: Positions, plan: Plan, further: Mapping[int, Held]) -> None:
    """Refuse the later checkpoint of an older plan if the log was truncated below it, perhaps before this plan was."""
    planned = {each.partition: each.leader_epoch for each in plan.ranges}
    asked = {
        partition: (held.highest_completed + 1, held.leader_epoch)
        for partition, held in further.items()
        if held.leader_epoch not in (NO_EPOCH, planned[partition])
    }
    refuse_truncated(positions.cluster, plan.working_group, plan.topic, asked)
