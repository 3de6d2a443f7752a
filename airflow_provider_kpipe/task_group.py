"""plan >> run >> checkpoint, as one group of tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import TaskGroup

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline, check_pipeline
from airflow_provider_kpipe.operators.backfill_plan import KpipeBackfillPlanOperator
from airflow_provider_kpipe.operators.checkpoint import KpipeCheckpointOperator
from airflow_provider_kpipe.operators.plan import KpipePlanOperator
from airflow_provider_kpipe.operators.run import KpipeRunOperator


class KpipeTaskGroup(TaskGroup):
    """The three tasks of a run. Other tasks may refer to them: a gate takes `group.plan.output`."""

    plan: KpipePlanOperator
    run: KpipeRunOperator
    checkpoint: KpipeCheckpointOperator


def kpipe_task_group(
    pipeline: KafkaPipeline,
    *,
    group_id: str | None = None,
    spark_conn_id: str = "spark_default",
    spark_conf: Mapping[str, str] | None = None,
    py_files: Sequence[str] = (),
    submit_options: Mapping[str, Any] | None = None,
    max_run_time: timedelta | float | None = None,
    **wishes: Any,
) -> KpipeTaskGroup:
    """Make the tasks of one run: a task that follows the group starts when the offsets are committed.

    :param group_id: name of the task group; the pipeline's name by default
    :param max_run_time: after this time, all partitions yield
    :param wishes: start, end, partitions, max_records and the other arguments of KpipePlanOperator
    """

    def plan(group: KpipeTaskGroup) -> KpipePlanOperator:
        checkpoint = f"{group.group_id}.checkpoint"
        return KpipePlanOperator(task_id="plan", pipeline=pipeline, checkpoint_task_id=checkpoint, **wishes)

    return _task_group(
        pipeline,
        group_id,
        plan,
        conn_id=spark_conn_id,
        spark_conf=spark_conf,
        py_files=py_files,
        submit_options=submit_options,
        max_run_time=max_run_time,
    )


def kpipe_backfill_task_group(
    pipeline: KafkaPipeline,
    *,
    group_id: str | None = None,
    spark_conn_id: str = "spark_default",
    spark_conf: Mapping[str, str] | None = None,
    py_files: Sequence[str] = (),
    submit_options: Mapping[str, Any] | None = None,
    max_run_time: timedelta | float | None = None,
) -> KpipeTaskGroup:
    """Make the same tasks for a backfill that a user asks for in a form: the DAG takes `params=backfill_params()`."""
    return _task_group(
        pipeline,
        group_id,
        lambda _: KpipeBackfillPlanOperator(task_id="plan", pipeline=pipeline),
        conn_id=spark_conn_id,
        spark_conf=spark_conf,
        py_files=py_files,
        submit_options=submit_options,
        max_run_time=max_run_time,
    )


def _task_group(
    pipeline: KafkaPipeline,
    group_id: str | None,
    make_plan: Callable[[KpipeTaskGroup], KpipePlanOperator],
    **of_run: Any,
) -> KpipeTaskGroup:
    """Make a group around the plan; pass `of_run` to the run task as it is."""
    check_pipeline(pipeline)
    group = KpipeTaskGroup(group_id=group_id or _task_id(pipeline.name))
    with group:
        group.plan = make_plan(group)
        group.run = KpipeRunOperator(task_id="run", pipeline=pipeline, plan=group.plan.output, **of_run)
        group.checkpoint = KpipeCheckpointOperator(task_id="checkpoint", pipeline=pipeline, plan=group.plan.output)
        group.run >> group.checkpoint
    return group


def _task_id(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)
