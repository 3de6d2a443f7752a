from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from airflow.sdk import DAG

from airflow_provider_kpipe import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.operators.backfill_plan import KpipeBackfillPlanOperator, backfill_params
from airflow_provider_kpipe.task_group import KpipeTaskGroup, kpipe_backfill_task_group, kpipe_task_group

MakeGroup = Callable[..., KpipeTaskGroup]

both_groups = pytest.mark.parametrize("make_group", [kpipe_task_group, kpipe_backfill_task_group])


@pytest.fixture(autouse=True)
def dag() -> Iterator[DAG]:
    with DAG("dag", schedule=None, params=backfill_params()) as dag:
        yield dag


@pytest.fixture
def pipeline() -> KafkaPipeline:
    return KafkaPipeline("my orders", KafkaSource("orders"), KafkaDestination("out"))


@both_groups
def test_arguments_of_the_run_reach_the_run(make_group: MakeGroup, pipeline: KafkaPipeline) -> None:
    group = make_group(
        pipeline,
        spark_conn_id="spark_small",
        spark_conf={"spark.executor.cores": "2"},
        py_files=["segments.py"],
        submit_options={"executor_memory": "2g"},
        max_run_time=timedelta(minutes=5),
    )
    assert group.run.pipeline is pipeline
    assert group.run.conn_id == "spark_small"
    assert group.run.spark_conf == {"spark.executor.cores": "2"}
    assert list(group.run.py_files) == ["segments.py"]
    assert group.run.submit_options == {"executor_memory": "2g"}
    assert group.run.max_run_time == 300


@both_groups
def test_omitted_arguments_are_the_runs_defaults(make_group: MakeGroup, pipeline: KafkaPipeline) -> None:
    run = make_group(pipeline).run
    said = (run.conn_id, run.spark_conf, run.py_files, run.submit_options, run.max_run_time)
    assert said == ("spark_default", None, (), None, None)


@both_groups
def test_three_tasks_follow_each_other(make_group: MakeGroup, pipeline: KafkaPipeline) -> None:
    group = make_group(pipeline)
    assert group.plan.downstream_task_ids >= {"my_orders.run", "my_orders.checkpoint"}
    assert group.run.downstream_task_ids == {"my_orders.checkpoint"}
    assert group.checkpoint.downstream_task_ids == set()


@both_groups
def test_a_group_is_named_by_its_pipeline_unless_something_else_is_said(
    make_group: MakeGroup, pipeline: KafkaPipeline
) -> None:
    assert make_group(pipeline).group_id == "my_orders"
    assert make_group(pipeline, group_id="again").group_id == "again"


def test_wishes_reach_the_plan(pipeline: KafkaPipeline) -> None:
    plan = kpipe_task_group(pipeline, start="earliest", end="2026-01-31", partitions=[0], dry_run=True).plan
    assert (plan.start, plan.end, plan.partitions, plan.dry_run_wanted) == ("earliest", "2026-01-31", [0], True)


def test_a_plan_looks_at_the_checkpoints_of_its_own_group(pipeline: KafkaPipeline) -> None:
    group = kpipe_task_group(pipeline)
    assert group.plan.checkpoint_task_id == group.checkpoint.task_id == "my_orders.checkpoint"


def test_the_wishes_of_a_backfill_come_from_the_form(pipeline: KafkaPipeline) -> None:
    plan = kpipe_backfill_task_group(pipeline).plan
    assert isinstance(plan, KpipeBackfillPlanOperator)
    assert plan.checkpoint_task_id is None
