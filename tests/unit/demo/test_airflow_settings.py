from __future__ import annotations

import json
import sys
from pathlib import Path

from demo.airflow_settings import LOCAL_SPARK, airflow_environment, kafka_connection

HOME, DAGS = Path("/home/airflow"), Path("/dags")


def environment(**environ: str) -> dict[str, str]:
    connections = {"kafka_default": kafka_connection("127.0.0.1:9092"), "spark_default": LOCAL_SPARK}
    return airflow_environment(HOME, DAGS, 8080, connections, environ)


def test_another_airflow_of_the_user_is_left_out() -> None:
    found = environment(
        AIRFLOW_HOME="/elsewhere", AIRFLOW__CORE__EXECUTOR="Celery", AIRFLOW_CONN_MINE="{}", _AIRFLOW_X="1", LANG="C"
    )
    assert found["AIRFLOW_HOME"] == str(HOME)
    assert found["LANG"] == "C"
    assert {"AIRFLOW__CORE__EXECUTOR", "AIRFLOW_CONN_MINE", "_AIRFLOW_X"}.isdisjoint(found)


def test_bytecode_is_written_so_that_airflow_starts_quickly() -> None:
    assert "PYTHONDONTWRITEBYTECODE" not in environment(PYTHONDONTWRITEBYTECODE="1")


def test_every_address_is_the_one_given_on_loopback() -> None:
    found = environment()
    assert found["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert found["AIRFLOW__API__PORT"] == "8080"
    assert found["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:8080"
    assert found["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:8080/execution/"


def test_connections_and_programs_are_found() -> None:
    found = environment(PATH="/usr/bin")
    assert json.loads(found["AIRFLOW_CONN_KAFKA_DEFAULT"])["extra"] == {"bootstrap.servers": "127.0.0.1:9092"}
    assert json.loads(found["AIRFLOW_CONN_SPARK_DEFAULT"])["host"] == "local[2]"
    assert found["PATH"] == f"{Path(sys.executable).parent}:/usr/bin"


def test_all_files_are_below_the_home() -> None:
    found = environment()
    assert found["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"].startswith(f"sqlite:///{HOME}/airflow.db?")
    assert found["TMPDIR"] == found["SPARK_LOCAL_DIRS"] == str(HOME / "tmp")


def test_the_database_may_be_another_one() -> None:
    address = "postgresql+psycopg2://airflow@/airflow?host=/run/postgresql"
    found = airflow_environment(HOME, DAGS, 8080, {}, {}, database=address)
    assert found["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == address
