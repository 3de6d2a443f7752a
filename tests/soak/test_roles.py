"""Every process of production has its role, by how its command line looks."""

from __future__ import annotations

import pytest

from tests.soak.roles import role_of

PYTHON = "/venv/bin/python"
SUBMIT = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", "/x/spark_jobs/kpipe_run.py", "/x/kpipe.job"]


@pytest.mark.parametrize(
    ("command", "parent", "role"),
    [
        (
            [PYTHON, "-m", "demo.supervisor", '{"airflow api-server": 1}'],
            "soak",
            "supervisor",
        ),
        (["/usr/bin/java", "-Xmx256m", "kafka.Kafka", "server.properties"], "soak", "broker"),
        (["/usr/lib/postgresql/15/bin/postgres", "-D", "/data"], "soak", "database"),
        (["postgres: checkpointer"], "database", "database"),
        ([PYTHON, "-m", "airflow", "api-server"], "supervisor", "api server"),
        (["airflow api_server -- host:127.0.0.1 port:56903"], "supervisor", "api server"),
        ([PYTHON, "-c", "from multiprocessing.resource_tracker import main"], "api server", "api server"),
        ([PYTHON, "-m", "airflow", "scheduler", "--skip-serve-logs"], "supervisor", "scheduler"),
        (["airflow worker -- LocalExecutor: <idle>"], "scheduler", "executor"),
        # As long as it has not changed its title.
        ([PYTHON, "-m", "airflow", "scheduler", "--skip-serve-logs"], "scheduler", "executor"),
        (["airflow worker -- LocalExecutor: 01a1f650"], "executor", "task"),
        (["airflow worker -- 01a1f650-eedf-7c85-b93a-6babeb6972a9"], "executor", "task"),
        ([PYTHON, "-m", "airflow", "dag-processor"], "supervisor", "dag processor"),
        ([PYTHON, "-m", "airflow", "dag-processor"], "dag processor", "dag parser"),
        ([PYTHON, "-m", "airflow", "triggerer", "--skip-serve-logs"], "supervisor", "triggerer"),
        ([PYTHON, "-m", "airflow", "triggerer", "--skip-serve-logs"], "triggerer", "trigger runner"),
        ([PYTHON, "-I", "-S", "/x/die_with_parent.py", "7", "spark-submit", "/x/kpipe_run.py"], "task", "submit"),
        (["bash", "/x/bin/spark-class", *SUBMIT], "task", "submit"),
        (["java", "-Xmx128m", "-cp", "/x/*", "org.apache.spark.launcher.Main", *SUBMIT], "submit", "submit"),
        (["/usr/lib/jvm/bin/java", "-cp", "/x/*", *SUBMIT], "task", "jvm"),
        ([PYTHON, "/x/spark_jobs/kpipe_run.py", "/x/kpipe.job", "/x/kpipe.properties"], "jvm", "driver"),
        ([PYTHON, "-m", "pyspark.daemon", "pyspark.worker"], "jvm", "python worker"),
        ([PYTHON, "-m", "pyspark.daemon", "pyspark.worker"], "python worker", "python worker"),
        ([], "supervisor", "other"),
    ],
)
def test_a_process_has_its_role(command: list[str], parent: str, role: str) -> None:
    assert role_of(command, parent) == role
