"""The DAGs of the soak: the pipeline with a gate beside it, which waits in the triggerer; and the redrive."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG
from soak_pipeline import PARKED, soak  # type: ignore[import-not-found]  # Airflow has the folder on its path

from airflow_provider_kpipe.operators.redrive import KpipeRedriveOperator, redrive_params
from airflow_provider_kpipe.sensors.partitions_drained import KpipePartitionsDrainedSensor
from airflow_provider_kpipe.task_group import kpipe_task_group

SEGMENTS = [str(Path(__file__).with_name("soak_pipeline.py"))]

with DAG("soak", schedule=None, max_active_runs=1):
    pipeline = kpipe_task_group(soak, start="committed", end="latest", py_files=SEGMENTS)
    # Beside the run: it looks before there is anything to see, and is deferred.
    KpipePartitionsDrainedSensor(
        task_id="gate", pipeline=soak, until=pipeline.plan.output, deferrable=True, poke_interval=1, timeout=600
    )

with DAG("soak_redrive", schedule=None, max_active_runs=1, params=redrive_params(max_attempts=3)):
    KpipeRedriveOperator(task_id="redrive", pipeline=soak, parking_topic=PARKED, py_files=SEGMENTS)
