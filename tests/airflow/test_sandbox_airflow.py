"""The sandbox's Airflow itself."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from airflow_provider_kpipe.sandbox import SandboxError
from demo.airflow_api import AirflowApiError
from demo.airflow_server import PROGRAMS, SandboxAirflow
from tests.kit.processes import outlasting

AddDag = Callable[[str, str], None]

RUN_SECONDS = 120

GREETING_DAG = """
from airflow.sdk import DAG, Param, task

with DAG("greeting", schedule=None, params={"name": Param("nobody", type="string")}):

    @task
    def greet(params):
        if params["name"] == "nobody":
            raise ValueError("whom shall I greet?")
        return {"hello": params["name"]}

    greet()
"""


def children(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def watch_it_come_up(own: SandboxAirflow, family: list[psutil.Process]) -> None:
    """Note every process that it starts on the way."""
    while own.missing():
        family += [each for each in children(own.pid) if each not in family]
        time.sleep(0.1)


def test_it_runs_a_dag_and_answers_questions_about_it(airflow: SandboxAirflow, add_dag: AddDag) -> None:
    add_dag("greeting", GREETING_DAG)
    run = airflow.api.trigger("greeting", {"name": "Ada"})
    failing = airflow.api.trigger("greeting")

    assert run.wait(RUN_SECONDS) == "success"
    assert run.task_states() == {"greet": "success"}
    assert run.xcom("greet") == {"hello": "Ada"}
    assert run.xcom("greet", "no-such-key") is None
    assert run.page.startswith(f"{airflow.url}/dags/greeting/runs/manual__")

    assert failing.wait(RUN_SECONDS) == "failed"
    assert "ValueError: whom shall I greet?" in failing.log("greet")

    failing.clear(["greet"])
    assert failing.wait(RUN_SECONDS) == "failed"
    assert failing.tries("greet") == 2
    assert "whom shall I greet?" in failing.log("greet", 1)

    run.mark_failed("greet")
    assert run.task_states() == {"greet": "failed"}
    with pytest.raises(AirflowApiError, match=r"404.*no_such_dag"):
        airflow.api.trigger("no_such_dag")


def test_it_listens_on_loopback_only(airflow: SandboxAirflow) -> None:
    listening = {
        connection.laddr.ip.removeprefix("::ffff:")
        for process in children(airflow.pid)
        for connection in connections_of(process)
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def connections_of(process: psutil.Process) -> list[Any]:
    """Airflow's tasks come and go: one that has ended by now listens nowhere."""
    try:
        return process.net_connections("inet")
    except psutil.NoSuchProcess:
        return []


def test_a_broken_dag_is_an_error_at_once_and_nothing_is_left(tmp_path: Path, airflow: SandboxAirflow) -> None:
    (tmp_path / "broken.py").write_text("from airflow.sdk import DAG\nimport no_such_module\n")
    own = SandboxAirflow(tmp_path, wait_for=("broken",))
    own.launch()
    home, family = own.home, [psutil.Process(own.pid)]
    with pytest.raises(SandboxError) as raised:
        watch_it_come_up(own, family)
    own.stop()

    assert "cannot import broken.py" in str(raised.value)
    assert "ModuleNotFoundError: No module named 'no_such_module'" in str(raised.value)
    assert len(family) > len(PROGRAMS.services)
    assert not any(each.is_running() for each in family)
    assert not home.exists()
    with pytest.raises(SandboxError, match="not running"):
        _ = own.pid
    assert set(airflow.api.health().values()) == {"healthy"}, "the other one goes on"


def test_when_its_parent_is_killed_nothing_is_left(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; "
        "from demo.airflow_server import SandboxAirflow; "
        "own = SandboxAirflow(Path(sys.argv[1]), home=Path(sys.argv[2])); own.launch(); print(own.pid, flush=True); "
        "time.sleep(600)"
    )
    (tmp_path / "dags").mkdir()
    command = [sys.executable, "-c", script, str(tmp_path / "dags"), str(tmp_path / "home")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        try:
            assert parent.stdout is not None
            supervisor = psutil.Process(int(parent.stdout.readline()))
            family: list[psutil.Process] = []
            while len(family) < len(PROGRAMS.services):
                assert supervisor.is_running()
                family = supervisor.children(recursive=True)
                time.sleep(0.05)
        finally:
            parent.kill()
    assert outlasting([supervisor, *family], RUN_SECONDS) == []


def test_a_missing_dag_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"no DAG folder .*/nowhere: give the folder"):
        SandboxAirflow(tmp_path / "nowhere").start()
