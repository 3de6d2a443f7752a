from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from airflow_provider_kpipe.spark.environment import installed_spark, link_spark, submit_environment

HUSH = "hush-hush"
AIRFLOWS_OWN = {
    "AIRFLOW_HOME": "/airflow",
    "AIRFLOW_CONN_KAFKA_DEFAULT": HUSH,
    "AIRFLOW_VAR_KEY": HUSH,
    "AIRFLOW__CORE__FERNET_KEY": HUSH,
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": HUSH,
    "AIRFLOW_CTX_DAG_ID": "orders",
    "_AIRFLOW__AS_LIBRARY": "1",
    "_AIRFLOW_PROCESS_CONTEXT": "client",
    "__AIRFLOW_SUPERVISOR_FD": "3",
}
OTHERS = {"HOME": "/home/me", "JAVA_HOME": "/java", "HADOOP_CONF_DIR": "/etc/hadoop", "MY_AIRFLOW": "kept", "LANG": "C"}


def test_airflows_own_variables_stay_with_airflow(tmp_path: Path) -> None:
    passed = submit_environment({**AIRFLOWS_OWN, **OTHERS}, "yarn", tmp_path)
    assert sorted(AIRFLOWS_OWN.keys() & passed.keys()) == []
    assert passed.items() >= OTHERS.items()


@pytest.mark.parametrize("path", [{"PATH": "/bin"}, {}], ids=["a path", "no path"])
def test_programs_beside_python_are_found_first(path: dict[str, str], tmp_path: Path) -> None:
    first, *others = submit_environment(path, "yarn", tmp_path)["PATH"].split(os.pathsep)
    assert first == str(Path(sys.executable).parent)
    assert others == path.get("PATH", os.defpath).split(os.pathsep)


def test_a_local_master_runs_this_python_and_this_spark(tmp_path: Path) -> None:
    passed = submit_environment({}, "local[2]", tmp_path)
    home = Path(passed["SPARK_HOME"])
    assert passed["PYSPARK_PYTHON"] == sys.executable
    assert passed["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert home.parent == tmp_path
    assert (home / "bin" / "spark-class").is_file()
    assert list((home / "jars").glob("spark-core_*.jar"))


def test_pyspark_comes_from_where_it_is_installed_and_not_out_of_sparks_archive(tmp_path: Path) -> None:
    package = installed_spark()
    assert package is not None
    assert (package / "python" / "lib" / "pyspark.zip").is_file()
    assert not (link_spark(package, tmp_path / "spark") / "python").exists()


def test_the_configuration_of_an_installed_spark_counts(tmp_path: Path) -> None:
    (tmp_path / "pyspark" / "conf").mkdir(parents=True)
    (tmp_path / "pyspark" / "conf" / "spark-defaults.conf").write_text("spark.x y")
    home = link_spark(tmp_path / "pyspark", tmp_path / "spark")
    assert (home / "conf" / "spark-defaults.conf").read_text() == "spark.x y"


CLUSTERS = ["spark://host:7077", "yarn", "k8s://https://host"]


@pytest.mark.parametrize("master", CLUSTERS)
def test_the_driver_of_a_cluster_has_this_python_and_this_spark_and_its_executors_their_own(
    master: str, tmp_path: Path
) -> None:
    theirs = {"PYSPARK_PYTHON": "/python/of/the/executors"}
    passed = submit_environment(theirs, master, tmp_path)
    assert passed["SPARK_HOME"] == str(installed_spark())
    assert passed["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert passed.items() >= theirs.items()
    assert "PYSPARK_PYTHON" not in submit_environment({}, master, tmp_path)
    assert "SPARK_LOCAL_IP" not in passed
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("master", CLUSTERS)
def test_a_spark_of_the_users_own_brings_its_own_python(master: str, tmp_path: Path) -> None:
    passed = submit_environment({"SPARK_HOME": "/my/spark"}, master, tmp_path)
    assert passed.keys() == {"PATH", "SPARK_LAUNCHER_OPTS", "SPARK_HOME"}


def test_modules_of_the_task_stay_in_front_of_nobodys_on_yarn(tmp_path: Path) -> None:
    modules = {"PYTHONPATH": "/dags"}
    assert "PYTHONPATH" not in submit_environment(modules, "yarn", tmp_path)
    for master in ("local[2]", "spark://host:7077", "k8s://https://host"):
        assert submit_environment({**modules, "SPARK_HOME": "/my/spark"}, master, tmp_path).items() >= modules.items()


def test_variables_that_are_set_stay(tmp_path: Path) -> None:
    mine = {"PYSPARK_PYTHON": "/my/python", "SPARK_HOME": "/my/spark", "SPARK_LOCAL_IP": "10.0.0.1"}
    mine["SPARK_LAUNCHER_OPTS"] = "-Xint"
    assert submit_environment(mine, "local", tmp_path).items() >= mine.items()


def test_the_environment_of_the_task_is_left_alone(tmp_path: Path) -> None:
    environment = dict(AIRFLOWS_OWN)
    submit_environment(environment, "local", tmp_path)
    assert environment == AIRFLOWS_OWN
