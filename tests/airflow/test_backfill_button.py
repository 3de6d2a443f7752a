"""Airflow's own backfill over a DAG whose schedule gives its runs no interval: it reads nothing, and says why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

from airflow_provider_kpipe.sandbox import SandboxBroker
from demo.airflow_api import DagRun
from demo.airflow_server import SandboxAirflow
from tests.kit.pipelines import Bench
from tests.kit.topics import fill, numbered

RUN_SECONDS = 120
MOMENT = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
DAG_OF = """
import pendulum
from airflow.sdk import DAG
from airflow_provider_kpipe import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.operators.plan import KpipePlanOperator

pipeline = KafkaPipeline({name!r}, KafkaSource({topic!r}), KafkaDestination({output!r}))
start_date = pendulum.datetime(2026, 1, 1, tz="UTC")
with DAG({name!r}, schedule="@hourly", start_date=start_date, catchup=False):
    KpipePlanOperator(task_id="continues", pipeline=pipeline)
    KpipePlanOperator(
        task_id="window",
        pipeline=pipeline,
        start="{{{{ data_interval_start }}}}",
        end="{{{{ data_interval_end }}}}",
    )
"""


@pytest.fixture(scope="module")
def run(broker: SandboxBroker, airflow: SandboxAirflow, add_dag: Callable[[str, str], None]) -> DagRun:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    name = Path(__file__).stem
    add_dag(name, DAG_OF.format(name=name, topic=bench.topic, output=bench.output))
    (run,) = airflow.api.backfill(name, MOMENT, MOMENT)
    assert run.wait(RUN_SECONDS) == "failed"
    return run


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("continues", "the run is a backfill, and its data interval is empty, so there is nothing to read"),
        ("window", "start and end are one moment, 2026-01-31T12:00:00.000+00:00, and no record lies between them"),
    ],
)
def test_a_schedule_without_intervals_cannot_be_backfilled(run: DagRun, task: str, said: str) -> None:
    assert (run.tries(task), run.xcom(task)) == (1, None)
    assert said in run.log(task)
    assert "schedule=CronDataIntervalTimetable('@hourly', timezone='UTC')" in run.log(task)
