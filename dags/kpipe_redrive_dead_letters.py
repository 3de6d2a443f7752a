"""A redrive started by hand: the form chooses dead letters by time, offsets, exception, pipeline or coordinates.

Each goes back exactly once, however often a user asks for it. A record that has failed three times is parked.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pendulum
from airflow.sdk import DAG
from orders_pipeline import orders

from airflow_provider_kpipe.operators.redrive import KpipeRedriveOperator, redrive_params

with DAG(
    dag_id="kpipe_redrive_dead_letters",
    description="orders.dead -> orders, or through the segments to orders.enriched, exactly once",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    # Two parallel redrives of one topic are safe, but take its partitions from each other.
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=10)},
    params=redrive_params(target="source", max_attempts=3),
    tags=["kpipe"],
    doc_md=__doc__,
):
    KpipeRedriveOperator(
        task_id="redrive",
        pipeline=orders,
        parking_topic="orders.parked",
        py_files=[str(Path(__file__).with_name("orders_pipeline.py"))],
    )
