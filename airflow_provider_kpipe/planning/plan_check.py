"""Checks of a plan from XCom or a task's state against its pipeline and topic, before records are read or committed.

Other writers have access to these places too, and a DAG may have been changed since the plan was made.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_kpipe.contract.kafka_names import backfill_group_of, redrive_group_of
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive.redrive import (
    RedriveOrder,
    check_redrive,
    dead_letter_of,
    ledger_topic_of,
)
from airflow_provider_kpipe.exceptions import StalePlanError
from airflow_provider_kpipe.kafka.positions import Positions, Topic


def check_of_pipeline(plan: Plan, pipeline: KafkaPipeline) -> None:
    """Raise StalePlanError for a plan that another pipeline made, or this one before it was changed."""
    source = pipeline.source
    if (plan.pipeline, plan.topic) != (pipeline.name, source.topic):
        raise StalePlanError(
            f"the plan is for pipeline {plan.pipeline!r} over {plan.topic!r}, and this task runs {pipeline.name!r} "
            f"over {source.topic!r}: give both tasks the same pipeline, and start a new run"
        )
    working_group = pipeline.group if plan.continues_group else backfill_group_of(pipeline.group, plan.run_key)
    _check(plan, "working_group", plan.working_group, working_group)
    _check(plan, "group", plan.group, *dict.fromkeys((pipeline.group, working_group)))
    _check(plan, "owner", plan.owner, pipeline.owner)
    _check(plan, "isolation_level", plan.isolation_level, source.isolation_level)
    _check_partitions(plan)


def check_of_redrive(order: RedriveOrder, pipeline: KafkaPipeline, parking_topic: str | None) -> None:
    """Raise StalePlanError for an order over other dead letters than the pipeline's, or to other topics."""
    plan, redrive = order.plan, order.redrive
    dead_letters = dead_letter_of(pipeline).topic
    _check(plan, "pipeline", plan.pipeline, pipeline.name)
    _check(plan, "topic", plan.topic, dead_letters)
    _check(plan, "group", plan.group, redrive_group_of(dead_letters))
    _check(plan, "working_group", plan.working_group, redrive_group_of(dead_letters))
    _check(plan, "isolation_level", plan.isolation_level, "read_committed")
    _check(plan, "ledger_topic", redrive.ledger_topic, ledger_topic_of(pipeline))
    _check(plan, "source_topic", redrive.source_topic, pipeline.source.topic)
    _check(plan, "parking_topic", redrive.parking_topic, parking_topic)
    check_redrive(pipeline, redrive.target, redrive.parking_topic)
    _check_partitions(plan)


def check_in_log(positions: Positions, plan: Plan) -> Topic:
    """Return the topic; raise StalePlanError if it is not the one planned against, or lacks planned ranges."""
    topic = positions.check_topic(plan)
    # Under another isolation level, the plan may hold records that are not committed yet.
    ends = positions.latest(topic, "read_uncommitted")
    for planned in plan.ranges:
        if planned.partition not in ends:
            raise StalePlanError(
                f"the plan {plan.run_key!r} has partition {planned.partition}, and topic {plan.topic!r} has partitions "
                f"0 to {max(ends)}: start a new run"
            )
        if planned.end > ends[planned.partition]:
            raise StalePlanError(
                f"the plan {plan.run_key!r} ends at {planned.end} in partition {planned.partition} of {plan.topic!r}, "
                f"and the log at {ends[planned.partition]}: the partition was truncated, or the plan was changed "
                "afterwards; start a new run"
            )
    return topic


def check_reached(positions: Positions, topic: Topic, plan: Plan, reached: Mapping[int, int]) -> None:
    """Raise StalePlanError for offsets beyond the end of the log: the group would skip records yet to be written."""
    ends = positions.latest(topic, "read_uncommitted")
    for partition, offset in reached.items():
        if offset > ends[partition]:
            raise StalePlanError(
                f"what is stored says that partition {partition} of {plan.topic!r} was handled up to {offset}, and the "
                f"log ends at {ends[partition]}: another client has changed the offsets of group "
                f"{plan.progress_group()!r}; delete that group, and start a new run"
            )


def _check(plan: Plan, name: str, found: str | None, *allowed: str | None) -> None:
    if found not in allowed:
        raise StalePlanError(
            f"the plan {plan.run_key!r} has {name}={found!r}, and pipeline {plan.pipeline!r} as it is now "
            f"{' or '.join(map(repr, allowed))}: give all tasks the same pipeline, and start a new run"
        )


def _check_partitions(plan: Plan) -> None:
    for planned in plan.ranges:
        if planned.partition >= plan.topic_partitions:
            raise StalePlanError(
                f"the plan {plan.run_key!r} has partition {planned.partition} of a topic with {plan.topic_partitions}: "
                "the plan was changed afterwards; start a new run"
            )
