"""A backfill started by hand: the form takes a time window or offsets; the live group's offsets do not move."""

from __future__ import annotations

from pathlib import Path

import pendulum
from airflow.sdk import DAG
from orders_pipeline import orders

from airflow_provider_kpipe.operators.backfill_plan import backfill_params
from airflow_provider_kpipe.task_group import kpipe_backfill_task_group

with DAG(
    dag_id="kpipe_orders_backfill",
    description="orders -> orders.enriched again, over a window or offsets of your choice",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    params=backfill_params(),
    tags=["kpipe"],
    doc_md=__doc__,
):
    kpipe_backfill_task_group(orders, py_files=[str(Path(__file__).with_name("orders_pipeline.py"))])
