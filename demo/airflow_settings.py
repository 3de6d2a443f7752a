"""The environment of a sandbox Airflow: loopback only, quick to start and to react."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Connection = Mapping[str, Any]

LOCK_SECONDS = 60
LOCAL_SPARK: Connection = {"conn_type": "spark", "host": "local[2]"}


def kafka_connection(bootstrap_servers: str) -> Connection:
    """Make a connection to a broker without authentication."""
    return {"conn_type": "kafka", "extra": {"bootstrap.servers": bootstrap_servers}}


def sqlite(home: Path) -> str:
    """Return the address of a database in the home."""
    # A writer that finds SQLite locked waits; by default it fails after five seconds.
    return f"sqlite:///{home / 'airflow.db'}?timeout={LOCK_SECONDS}"


def airflow_environment(
    home: Path,
    dags: Path,
    port: int,
    connections: Mapping[str, Connection],
    environ: Mapping[str, str] = os.environ,
    *,
    database: str | None = None,
) -> dict[str, str]:
    """Return the variables for every process of one Airflow, without those of another Airflow in `environ`."""
    # Without bytecode files, each of Airflow's processes would compile its thousand modules again.
    inherited = {
        name: value
        for name, value in environ.items()
        if not name.startswith(("AIRFLOW_", "_AIRFLOW")) and name != "PYTHONDONTWRITEBYTECODE"
    }
    temporary = home / "tmp"
    return {
        **inherited,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database or sqlite(home),
        **{f"AIRFLOW__{name}": value for name, value in _configuration(dags, port).items()},
        **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(connection) for name, connection in connections.items()},
        # The files that a killed job leaves behind are removed with the home.
        "TMPDIR": str(temporary),
        "SPARK_LOCAL_DIRS": str(temporary),
        "SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={temporary} -XX:-UsePerfData",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", os.defpath)]),
    }


def _configuration(dags: Path, port: int) -> dict[str, str]:
    url = f"http://127.0.0.1:{port}"
    return {
        "API__HOST": "127.0.0.1",
        "API__PORT": str(port),
        "API__BASE_URL": url,
        "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        # Only this machine can reach it, and a demo should not ask for a password.
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "CORE__DAGS_FOLDER": str(dags),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        # Runs are started by hand: one that the schedule starts at a full hour would come between them.
        "SCHEDULER__USE_JOB_SCHEDULE": "False",
        # The executor starts so many processes; the default is 32.
        "CORE__PARALLELISM": "4",
        "DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "DAG_PROCESSOR__REFRESH_INTERVAL": "2",
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.1",
        "WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
