"""A scheduled pipeline: enrich the new orders every hour, then report the offsets that the gate lets through."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import DAG, CronDataIntervalTimetable, task
from orders_pipeline import orders

from airflow_provider_kpipe.sensors.partitions_drained import KpipePartitionsDrainedSensor
from airflow_provider_kpipe.task_group import kpipe_task_group

with DAG(
    dag_id="kpipe_orders",
    description="orders -> orders.enriched, exactly once",
    # A plain "@hourly" would give Airflow's own backfill no hours to read.
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    # Concurrent runs of one pipeline would take partitions from each other.
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=10)},
    tags=["kpipe"],
    doc_md=__doc__,
):
    pipeline = kpipe_task_group(
        orders,
        start="committed",
        end="latest",
        max_records=5_000_000,
        py_files=[str(Path(__file__).with_name("orders_pipeline.py"))],
    )

    drained = KpipePartitionsDrainedSensor(
        task_id="drained",
        pipeline=orders,
        until=pipeline.plan.output,
        deferrable=True,
        poke_interval=2,
        timeout=600,
    )

    @task
    def report(drained: Any) -> dict[str, int]:
        """Return the committed offsets, with which a job that needs complete orders would start."""
        return {partition: at["committed"] for partition, at in drained["partitions"].items()}

    pipeline >> drained >> report(drained.output)
