"""The only code that moves the public group."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from confluent_kafka import KafkaException, TopicPartition

from airflow_provider_kpipe.contract.kafka_names import checkpoint_id_of, published_group_of
from airflow_provider_kpipe.contract.offsets.metadata import as_text
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.checkpoint import Checkpoint, PartitionCheckpoint
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from airflow_provider_kpipe.contract.progress.publishing import MovedError, Target, is_untouched, target_of
from airflow_provider_kpipe.contract.progress.standing import Facts, Held
from airflow_provider_kpipe.exceptions import CommitError, GroupInUseError, GroupMovedError
from airflow_provider_kpipe.kafka.broker_errors import remedy
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.planning.facts import facts_of
from airflow_provider_kpipe.planning.plan_check import check_in_log, check_reached
from airflow_provider_kpipe.transactions.left_open import end_what_is_left_open
from airflow_provider_kpipe.transactions.offset_transaction import OffsetTransaction

log = logging.getLogger(__name__)


def publish(settings: Mapping[str, str], plan: Plan, destination: Mapping[str, str] | None = None) -> Checkpoint:
    """Commit to the plan's group the offsets that its run has stored.

    1. Refuse a topic other than the planned one, and ranges that it does not have.
    2. End the transactions that killed jobs left open: they hold back readers, also those of the stored progress.
    3. Fence any other checkpoint of the group: from here on, only this one commits.
    4. Refuse a group with live members: they would overwrite the commit, or be confused by it.
    5. Read the stored progress and the group's offsets. Refuse a group that another client has moved since the plan,
       and progress beyond the end of the log.
    6. Commit, in one transaction, the stored offsets beyond the group's, and a note that a checkpoint did so. Commit
       unchanged offsets again as they are: the broker forgets an offset a week after its last commit.
    7. Read it back.

    :param destination: settings of the connection over which the run writes in transactions; None if it has none
    """
    with Positions(settings) as positions:
        topic = check_in_log(positions, plan)
        if destination is not None:
            end_what_is_left_open(positions, destination, plan)
        partitions = [each.partition for each in plan.ranges]
        with (
            _naming_refusals(plan),
            OffsetTransaction(settings, checkpoint_id_of(plan.group), plan.topic) as transaction,
        ):
            _check_members(positions, plan)
            progress = positions.progress(plan)
            before = facts_of(positions, plan.group, topic, partitions)
            targets = _targets(plan, progress, before)
            check_reached(positions, topic, plan, {at: target.offset for at, target in targets.items()})
            transaction.send(plan.group, _public(plan, progress, targets, before))
            transaction.send(published_group_of(plan.group), _remembered(plan, targets, before))
            # A transaction commits without being a member of the group: the broker accepts it beside live members.
            _check_members(positions, plan)
            transaction.commit()
        after = positions.group_offsets(plan.group, plan.topic, partitions)
        for partition, target in targets.items():
            found = after[partition].offset if partition in after else None
            if found != target.offset:
                raise CommitError(
                    f"partition {partition}: group {plan.group!r} was set to {target.offset} and reads {found}: "
                    "someone moves it at the same time; run the checkpoint again"
                )
    return Checkpoint(
        run_key=plan.run_key,
        pipeline=plan.pipeline,
        group=plan.group,
        topic=plan.topic,
        partitions=tuple(
            _record(each, after[each.range.partition].offset if each.range.partition in after else None)
            for each in progress
        ),
    )


@contextmanager
def _naming_refusals(plan: Plan) -> Iterator[None]:
    try:
        yield
    except KafkaException as failure:
        error = failure.args[0]
        if error.fatal():
            raise CommitError(
                f"group {plan.group!r}: another checkpoint of it has come in between ({error.str()}), and nothing was "
                "committed; run the checkpoint again"
            ) from failure
        raise CommitError(
            f"group {plan.group!r}: the broker rejected the commit of offsets of {plan.topic!r} ({error.str()}): "
            f"{remedy(error)}; then run the checkpoint again"
        ) from failure


def _check_members(positions: Positions, plan: Plan) -> None:
    members = positions.members(plan.group)
    if members:
        raise GroupInUseError(
            f"group {plan.group!r} has live members ({', '.join(members[:3])}): stop them, or give the pipeline "
            "a group_id of its own; nothing was committed"
        )


def _targets(plan: Plan, progress: Sequence[PartitionProgress], before: Mapping[int, Facts]) -> dict[int, Target]:
    try:
        found = {each.range.partition: target_of(plan, each, before[each.range.partition]) for each in progress}
    except MovedError as moved:
        raise GroupMovedError(str(moved)) from moved
    return {partition: target for partition, target in found.items() if target is not None}


def _public(
    plan: Plan, progress: Sequence[PartitionProgress], targets: Mapping[int, Target], before: Mapping[int, Facts]
) -> list[TopicPartition]:
    """Return the offsets to publish or mark, and those that stay as they are, without partitions of a newer run."""
    offsets = _positions(plan, targets)
    for each in progress:
        facts = before[each.range.partition]
        held = facts.committed
        if each.range.partition in targets or held is None or each.ended == "revoked":
            continue
        if is_untouched(plan, each, facts):
            offsets.append(_as_it_is(plan, each.range.partition, held))
    return offsets


def _remembered(plan: Plan, targets: Mapping[int, Target], before: Mapping[int, Facts]) -> list[TopicPartition]:
    """Return the same for the group beside it. Only checkpoints commit there: it reveals a later reset or deletion."""
    kept = [
        _as_it_is(plan, partition, facts.published)
        for partition, facts in before.items()
        if partition not in targets and facts.published is not None
    ]
    return _positions(plan, targets) + kept


def _positions(plan: Plan, targets: Mapping[int, Target]) -> list[TopicPartition]:
    ranges = {each.partition: each for each in plan.ranges}
    return [
        TopicPartition(
            plan.topic,
            partition,
            target.offset,
            as_text(target.mark.to_json()),
            leader_epoch=ranges[partition].epoch_at(target.offset),
        )
        for partition, target in targets.items()
    ]


def _as_it_is(plan: Plan, partition: int, held: Held) -> TopicPartition:
    return TopicPartition(plan.topic, partition, held.offset, held.metadata, leader_epoch=held.leader_epoch)


def _record(progress: PartitionProgress, committed: int | None) -> PartitionCheckpoint:
    return PartitionCheckpoint(
        partition=progress.range.partition,
        start=progress.range.start,
        end=progress.range.end,
        committed=committed,
        complete=progress.complete,
        reason=progress.reason,
        counts=progress.all_counts,
    )
