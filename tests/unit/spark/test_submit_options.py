from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_kpipe import KafkaDeadLetter, KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.operators.redrive import KpipeRedriveOperator
from airflow_provider_kpipe.operators.run import KpipeRunOperator
from airflow_provider_kpipe.spark.submit_options import NOT_SUBMIT_OPTIONS, check_submit_options
from airflow_provider_kpipe.task_group import kpipe_task_group

PIPELINE = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"), dead_letter=KafkaDeadLetter("dead"))
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"submit_options": {"executor_memry": "2g"}}, "submit_options sets 'executor_memry', which .* takes: archives,"),
    ({"submit_options": {"conf": {}}}, "submit_options sets 'conf', which kpipe sets itself: put its properties into"),
    ({"submit_options": {"deploy_mode": "cluster"}}, "deploy_mode='cluster', and kpipe's driver runs beside its"),
    ({"submit_options": {"deploy_mode": "clust"}}, "deploy_mode='clust': use 'client', or remove it"),
    ({"submit_options": {"num_executors": 0}}, "num_executors=0: use a whole number from 1"),
    ({"submit_options": {"executor_cores": "two"}}, "executor_cores='two': use a whole number from 1"),
    ({"submit_options": {"executor_cores": True}}, "executor_cores=True: use a whole number from 1"),
    ({"submit_options": {"executor_memory": 4}}, "executor_memory=4: use a text"),
    ({"submit_options": {"files": ["x"]}}, "files=.* use a text"),
    ({"submit_options": {"verbose": "yes"}}, "verbose='yes': use True or False"),
    ({"submit_options": {"env_vars": "A=1"}}, "env_vars='A=1': use a dictionary"),
    ({"submit_options": "executor_memory=2g"}, "submit_options='executor_memory=2g': use a dictionary"),
    ({"spark_conf": {"spark.speculation": "true"}}, "spark_conf sets 'spark.speculation', which kpipe sets itself"),
    ({"spark_conf": {"spark.submit.deployMode": "cluster"}}, "deployMode='cluster': remove it, kpipe's driver runs"),
    ({"spark_conf": {"spark.master": "yarn"}}, "spark.master='yarn': remove it, the Spark connection says which"),
    ({"spark_conf": "spark.executor.memory=2g"}, "spark_conf='spark.executor.memory=2g': use a dictionary"),
    ({"py_files": "segments.py"}, "py_files='segments.py': use a list of paths"),
    ({"spark_conf": {3: "2g"}}, "spark_conf has the name 3: use a text"),
    ({"py_files": None}, "py_files=None: use a list of paths"),
    ({"py_files": [""]}, "py_files=\\[''\\]: use a list of paths"),
    ({"conn_id": ""}, "conn_id='': use the name of a Spark connection"),
    ({"conn_id": 3}, "conn_id=3: use the name of a Spark connection"),
    ({"progress_interval": 0}, "progress_interval=0: use seconds above 0"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG, ids=[str(arguments) for arguments, _ in WRONG])
def test_impossible_options_fail_in_their_declaration(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        KpipeRunOperator(task_id="run", pipeline=PIPELINE, plan={}, **arguments)
    with pytest.raises(ValueError, match=said):
        KpipeRedriveOperator(task_id="redrive", pipeline=PIPELINE, **arguments)


def test_a_task_group_refuses_them_too() -> None:
    with DAG("dag", schedule=None), pytest.raises(ValueError, match="submit_options sets 'executor_memry'"):
        kpipe_task_group(PIPELINE, submit_options={"executor_memry": "2g"})


@pytest.mark.parametrize("name", NOT_SUBMIT_OPTIONS)
def test_options_of_kpipe_itself_are_refused_with_the_remedy(name: str) -> None:
    with pytest.raises(ValueError, match=f"^submit_options sets '{name}', which kpipe sets itself: "):
        check_submit_options({name: "x"})


def test_options_of_the_hook_are_taken() -> None:
    check_submit_options({"executor_memory": "2g", "num_executors": 4, "env_vars": {"A": "1"}, "deploy_mode": "client"})
    check_submit_options({"executor_cores": "2", "verbose": True, "jars": None})
