"""The only code that moves the public group."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from airflow_provider_kpipe.contract.checkpoint import Checkpoint, CommitMark, PartitionCheckpoint
from airflow_provider_kpipe.contract.connecting import CONNECTING
from airflow_provider_kpipe.contract.ownership import takes_over
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress import PartitionProgress, StoredProgress
from airflow_provider_kpipe.exceptions import CommitError, GroupInUseError, GroupMovedError
from airflow_provider_kpipe.kafka.bounds import let_go, within
from airflow_provider_kpipe.kafka.cluster import ANSWER_SECONDS
from airflow_provider_kpipe.kafka.plan_check import check_in_log
from airflow_provider_kpipe.kafka.positions import GroupOffset, Positions
from airflow_provider_kpipe.kafka.refusals import remedy

log = logging.getLogger(__name__)


def publish(settings: Mapping[str, str], plan: Plan) -> Checkpoint:
    """Commit to the plan's group what its run has stored.

    1. Refuse a topic that is not the one planned against, and ranges that it does not have.
    2. Refuse a group with live members: they would overwrite the commit, or be confused by it.
    3. Refuse a group that someone else has moved since the plan was made.
    4. Commit what is stored beyond it, also by an earlier run whose checkpoint never came, and look at each
       partition's answer. What stays where it is is committed as it is: the broker forgets an offset that nobody has
       committed for a week.
    5. Read it back.
    """
    with Positions(settings) as positions:
        check_in_log(positions, plan)
        _check_members(positions, plan)
        progress = positions.progress(plan)
        before = _held(positions, plan)
        targets = {
            **_left_behind(positions, plan, progress, before),
            **{
                each.range.partition: _marked(plan.run_key, each)
                for each in progress
                if _may_move(plan, each, before.get(each.range.partition))
            },
        }
        unchanged = _unchanged(progress, before)
        if targets or unchanged:
            _commit(settings, plan, {**unchanged, **targets})
        after = _held(positions, plan)
        _read_back(plan, targets, after)
    return Checkpoint(
        run_key=plan.run_key,
        pipeline=plan.pipeline,
        group=plan.group,
        topic=plan.topic,
        partitions=tuple(_record(each, after.get(each.range.partition)) for each in progress),
    )


def _check_members(positions: Positions, plan: Plan) -> None:
    members = positions.members(plan.group)
    if members:
        raise GroupInUseError(
            f"group {plan.group!r} has live members ({', '.join(members[:3])}): stop them, or give the pipeline "
            "a group_id of its own; nothing was committed"
        )


def _held(positions: Positions, plan: Plan) -> dict[int, GroupOffset]:
    return positions.group_offsets(plan.group, plan.topic, [each.partition for each in plan.ranges])


def _unchanged(progress: Sequence[PartitionProgress], before: Mapping[int, GroupOffset]) -> dict[int, GroupOffset]:
    """The offsets that stand where the plan found them. A partition that a newer run has is left to that one."""
    return {
        each.range.partition: held
        for each in progress
        if (held := before.get(each.range.partition)) is not None
        and held.offset == each.range.committed
        and each.ended != "revoked"
    }


def _left_behind(
    positions: Positions, plan: Plan, progress: Sequence[PartitionProgress], before: Mapping[int, GroupOffset]
) -> dict[int, GroupOffset]:
    """What an earlier run has stored and never published: the plan begins behind it, and may have nothing to read.

    It is published as that run's own checkpoint would have done it: the run may still be at work. And where a new group
    begins at the end of a partition, that is where it stands from now on: the next plan would begin at a later end.
    """
    behind = [each for each in progress if _begins_beyond(each, before.get(each.range.partition))]
    if not behind:
        return {}
    stored = positions.group_offsets(plan.progress_group, plan.topic, [each.range.partition for each in behind])
    targets = {}
    for each in behind:
        held = stored.get(each.range.partition)
        found = StoredProgress.read_text(held.metadata) if held else None
        if found is not None and takes_over(each.range, plan, found):
            targets[each.range.partition] = _marked(found.run_key, each)
        elif found is None and plan.continues_group and not len(each.range):
            targets[each.range.partition] = _marked(plan.run_key, each)
    return targets


def _begins_beyond(progress: PartitionProgress, held: GroupOffset | None) -> bool:
    """Whether a partition has not moved since it was planned, neither the group nor the run, and the range begins
    beyond where the group stands."""
    committed, planned = held.offset if held else None, progress.range
    stands = committed == planned.committed and progress.next_offset == planned.start and progress.ended != "revoked"
    return stands and planned.start > (committed or 0)


def _marked(run_key: str, progress: PartitionProgress) -> GroupOffset:
    return GroupOffset(progress.next_offset, CommitMark(run_key, progress.beyond).to_text())


def _may_move(plan: Plan, progress: PartitionProgress, held: GroupOffset | None) -> bool:
    """Whether there is anything to publish; raises where the group is not as the plan left it."""
    # Where a partition was only taken on, or not even that, the group may be anywhere.
    if progress.ended == "revoked" or not progress.started or progress.next_offset == progress.range.start:
        return False
    partition, planned = progress.range.partition, progress.range.committed
    committed = held.offset if held else None
    ours = held is not None and _published_by((plan.run_key, progress.took_over), held)
    # Or the run before was published up to where this one goes on from it.
    ours = ours or (plan.continues_group and committed == progress.range.start)
    if committed != planned and not ours:
        raise GroupMovedError(
            f"partition {partition}: group {plan.group!r} stood at {planned} when the plan was made and is at "
            f"{committed} now: someone else moved it, so nothing was committed; start a new run"
        )
    if committed is not None and progress.next_offset < committed:
        raise GroupMovedError(
            f"partition {partition}: committing {progress.next_offset} would take group {plan.group!r} back from "
            f"{committed}: nothing was committed; start a new run"
        )
    return progress.next_offset != committed


def _published_by(run_keys: Container[str | None], held: GroupOffset) -> bool:
    mark = CommitMark.read_text(held.metadata)
    return mark is not None and mark.run_key in run_keys


def _commit(settings: Mapping[str, str], plan: Plan, targets: Mapping[int, GroupOffset]) -> None:
    offsets = [
        TopicPartition(plan.topic, partition, target.offset, target.metadata or "")
        for partition, target in targets.items()
    ]
    consumer = Consumer({**CONNECTING, "log_level": 3, **settings, "group.id": plan.group, "enable.auto.commit": False})
    try:
        # From outside the group, as a client that is no member: the broker refuses it if members came meanwhile.
        answers = within(ANSWER_SECONDS, lambda: consumer.commit(offsets=offsets, asynchronous=False))
    except KafkaException as failure:
        error: KafkaError = failure.args[0]
        raise CommitError(
            f"group {plan.group!r}: the broker refused to commit offsets of {plan.topic!r} ({error.str()}): "
            f"{remedy(error)}; then run the checkpoint again"
        ) from failure
    finally:
        let_go(consumer)
    refused = [answer for answer in answers or [] if answer.error is not None]
    if refused:
        raise CommitError(
            f"group {plan.group!r}: partition {refused[0].partition} of {plan.topic!r} was not committed "
            f"({refused[0].error}), and {len(refused) - 1} more; run the checkpoint again"
        )


def _read_back(plan: Plan, targets: Mapping[int, GroupOffset], after: Mapping[int, GroupOffset]) -> None:
    for partition, target in targets.items():
        found = after.get(partition)
        if found is None or found.offset != target.offset:
            raise CommitError(
                f"partition {partition}: group {plan.group!r} was set to {target.offset} and reads "
                f"{found.offset if found else None}: someone moves it at the same time; run the checkpoint again"
            )


def _record(progress: PartitionProgress, held: GroupOffset | None) -> PartitionCheckpoint:
    return PartitionCheckpoint(
        partition=progress.range.partition,
        start=progress.range.start,
        end=progress.range.end,
        committed=held.offset if held else None,
        complete=progress.complete,
        reason=progress.reason,
        counts=progress.counts,
    )
