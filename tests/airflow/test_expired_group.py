"""A group that the broker has forgotten is no new one, whatever has run in the DAG since."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.sandbox import SandboxBroker
from demo.airflow_server import SandboxAirflow
from tests.kit.pipelines import Bench
from tests.kit.topics import fill, numbered

RUN_SECONDS = 120
NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
DAG_OF = """
import pendulum
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow_provider_kpipe import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.operators.checkpoint import KpipeCheckpointOperator
from airflow_provider_kpipe.operators.plan import KpipePlanOperator

pipeline = KafkaPipeline({name!r}, KafkaSource({name!r}), KafkaDestination({output!r}))
hourly = CronDataIntervalTimetable("@hourly", timezone="UTC")
with DAG({dag!r}, schedule=hourly, start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), catchup=False):
    plan = KpipePlanOperator(task_id="plan", pipeline=pipeline, checkpoint_task_id="checkpoint")
    KpipeCheckpointOperator(task_id="checkpoint", pipeline=pipeline, plan=plan.output)
"""


def forget_all_groups(bench: Bench) -> None:
    """As the broker does when nobody has committed for a week."""
    admin = AdminClient(bench.settings)
    groups = [each.group_id for each in admin.list_consumer_groups().result(30).valid]
    ours = [group for group in groups if group.startswith(bench.topic)]
    assert bench.topic in ours
    for future in admin.delete_consumer_groups(ours).values():
        future.result(30)


def test_it_is_no_new_one_behind_a_backfill(
    broker: SandboxBroker, airflow: SandboxAirflow, add_dag: Callable[[str, str], None]
) -> None:
    bench, dag = Bench.make(broker.bootstrap_servers), Path(__file__).stem
    add_dag(dag, DAG_OF.format(dag=dag, name=bench.topic, output=bench.output))
    # There is nothing to read yet, so the group stands at 0.
    assert airflow.api.trigger(dag).wait(RUN_SECONDS) == "success"
    (backfill,) = airflow.api.backfill(dag, NOON, NOON)
    assert backfill.wait(RUN_SECONDS) == "success", backfill.log("plan")
    forget_all_groups(bench)
    fill(bench.bootstrap, bench.topic, numbered(5))

    later = airflow.api.trigger(dag)

    assert later.wait(RUN_SECONDS) == "failed", later.xcom("plan")
    assert "the group has no committed offset, though an earlier run knew it at 0" in later.log("plan")
