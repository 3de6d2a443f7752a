"""The same with Spark's own connector: one SparkSubmitOperator, which gets the offsets and commits none.

The DAG of a real user would have to find the offsets out first, and to keep them afterwards.
"""

from __future__ import annotations

import json
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

settings = json.loads(Path(__file__).with_name("settings.json").read_text())

with DAG("small_peer", schedule=None):
    SparkSubmitOperator(
        task_id="run",
        conn_id="spark_default",
        application=settings["application"],
        application_args=["{{ dag_run.conf['request'] }}"],
        # The peer's own Spark, with its connector's jars on the class path: nothing is resolved or copied.
        env_vars=settings["environment"],
        properties_file=settings["properties"],
    )
