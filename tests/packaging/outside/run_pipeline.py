"""Runs plan >> run >> checkpoint from an installed wheel, and prints as its last line what came of it.

Usage: run_pipeline.py SOURCE_TOPIC OUTPUT_TOPIC, with AIRFLOW_HOME and the connections in the environment.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pendulum
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
from airflow.sdk import DAG
from airflow.utils import db

from airflow_provider_kpipe import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.task_group import kpipe_task_group

HERE = Path(__file__).parent


def make_dag(source: str, output: str) -> DAG:
    pipeline = KafkaPipeline(
        name=source,
        source=KafkaSource(topic=source),
        segments=["shout_segment:shout"],
        destination=KafkaDestination(topic=output, keep_partition=True),
    )
    with DAG(dag_id="outside", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC")) as dag:
        kpipe_task_group(
            pipeline,
            group_id="pipeline",
            start="committed",
            end="latest",
            py_files=[str(HERE / "shout_segment.py")],
        )
    return dag


def main() -> None:
    dag = make_dag(*sys.argv[1:])
    db.initdb()
    DagBundlesManager().sync_bundles_to_db()
    bag = BundleDagBag(dag_folder=HERE, bundle_path=HERE, bundle_name="dags-folder")
    bag.bag_dag(dag)
    sync_bag_to_db(bag, "dags-folder", None)
    run = dag.test()
    report = {
        "state": run.state,
        "tasks": {each.task_id: each.state for each in run.get_task_instances()},
        "path": sys.path,
        "modules": sorted(filter(None, {getattr(module, "__file__", None) for module in list(sys.modules.values())})),
    }
    sys.stdout.write(f"\n{json.dumps(report)}\n")


if __name__ == "__main__":
    main()
