"""A real Airflow over the session's broker."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_provider_kpipe.sandbox import SandboxBroker
from demo.airflow_server import SandboxAirflow
from demo.airflow_settings import LOCAL_SPARK, kafka_connection

AddDag = Callable[[str, str], None]

REPOSITORY_DAGS = Path(__file__).parents[2] / "dags"
PARSE_SECONDS = 60
RUNNING: list[SandboxAirflow] = []


@pytest.fixture(scope="session")
def dags_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository's DAGs, so that tests can add their own."""
    folder = tmp_path_factory.mktemp("airflow") / "dags"
    shutil.copytree(REPOSITORY_DAGS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="session")
def airflow(broker: SandboxBroker, dags_folder: Path) -> Iterator[SandboxAirflow]:
    """One Airflow for all tests of this folder; `airflow.api` triggers runs and looks at them.

    A test that stops it, or kills a part of it, takes one of its own.
    """
    connections = {"kafka_default": kafka_connection(broker.bootstrap_servers), "spark_default": LOCAL_SPARK}
    with SandboxAirflow(
        dags_folder,
        connections=connections,
        wait_for=("kpipe_orders", "kpipe_orders_backfill", "kpipe_redrive_dead_letters"),
    ) as running:
        RUNNING.append(running)
        yield running


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End it with the last test of this folder: while nobody asks it for anything, it takes a fifth of a core."""
    if nextitem is None or nextitem.path.parent != item.path.parent:
        for each in RUNNING:
            each.stop()


@pytest.fixture(scope="session")
def add_dag(airflow: SandboxAirflow, dags_folder: Path) -> AddDag:
    """Adds a DAG to the running Airflow: `add_dag("my_dag", source)` returns when it can be triggered."""

    def add(dag_id: str, source: str) -> None:
        (dags_folder / f"{dag_id}.py").write_text(source)
        deadline = time.monotonic() + PARSE_SECONDS
        while dag_id not in airflow.api.dags():
            assert not airflow.api.import_errors()
            assert time.monotonic() < deadline, f"{dag_id} was not parsed within {PARSE_SECONDS} s"
            time.sleep(0.2)

    return add
