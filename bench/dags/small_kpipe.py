"""A small run as a user of kpipe writes it: plan, run, checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

from airflow.sdk import DAG

from airflow_provider_kpipe import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.task_group import kpipe_task_group

settings = json.loads(Path(__file__).with_name("settings.json").read_text())

small = KafkaPipeline(
    name="small",
    source=KafkaSource(settings["source"]),
    destination=KafkaDestination(settings["kpipe_output"]),
)

with DAG("small_kpipe", schedule=None):
    kpipe_task_group(small)
