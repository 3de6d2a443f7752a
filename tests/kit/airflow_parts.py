"""An Airflow whose scheduler and triggerer can be killed, each by itself, and started again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from demo import airflow_server
from demo.airflow_server import PROGRAMS, SandboxAirflow
from demo.airflow_settings import Connection
from demo.supervisor import Programs
from tests.kit.jobs import wait_for
from tests.kit.processes import outlasting

START_SECONDS = 120.0
MORTAL = ("scheduler", "triggerer")
# Whoever has died is noticed soon.
SOON = {
    "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    "SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "10",
    "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "1",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "15",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "1",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "1",
    "TRIGGERER__JOB_HEARTBEAT_SEC": "1",
    "TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "10",
}


class Parts:
    """The two of them. What a killed one has started goes on, as where only that process is killed."""

    def __init__(self, airflow: SandboxAirflow) -> None:
        self._home = airflow.home
        surroundings = psutil.Process(airflow.pid).environ()
        self._environment = {**surroundings, **{f"AIRFLOW__{name}": value for name, value in SOON.items()}}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._left_behind: list[psutil.Process] = []

    def start(self, *names: str) -> None:
        for name in names:
            with (self._home / f"{name}.log").open("ab") as log:
                self._running[name] = subprocess.Popen(
                    PROGRAMS.services[name],
                    cwd=self._home,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )

    def kill(self, name: str) -> None:
        part = self._running.pop(name)
        assert part.poll() is None, f"the {name} had ended by itself"
        self._left_behind += _below(part)
        part.kill()
        part.wait()

    def end(self) -> None:
        """End both, and what killed ones have left behind."""
        # An executor's workers write their title over their environment.
        left = [*self._left_behind, *(each for part in self._running.values() for each in _below(part))]
        left += [each for each in psutil.process_iter() if self._is_ours(each)]
        for each in left:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        for part in self._running.values():
            part.kill()
            part.wait()
        outlasting(left, 30)

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL") == "1" and (
                process.environ().get("AIRFLOW_HOME") == str(self._home)
            )
        except psutil.Error:
            return False


def _below(part: subprocess.Popen[bytes]) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(part.pid).children(recursive=True)
    return []


@contextmanager
def airflow_in_parts(
    home: Path, dags: Path, connections: Mapping[str, Connection], dag_id: str
) -> Iterator[tuple[SandboxAirflow, Parts]]:
    """Its API server and its DAG processor stay."""
    staying = {name: command for name, command in PROGRAMS.services.items() if name not in MORTAL}
    airflow = SandboxAirflow(dags, connections=connections, wait_for=(dag_id,), home=home)
    airflow_server.PROGRAMS = Programs(PROGRAMS.first, staying)
    try:
        airflow.launch()
    finally:
        airflow_server.PROGRAMS = PROGRAMS
    try:
        # They end at once where the database is not there yet. Nor is there the environment of a process that has just
        # begun.
        wait_for(lambda: _answers(airflow), "the API server", START_SECONDS)
        parts = Parts(airflow)
        try:
            parts.start(*MORTAL)
            airflow.wait_until_ready()
            yield airflow, parts
        finally:
            parts.end()
    finally:
        airflow.stop()


def _answers(airflow: SandboxAirflow) -> bool:
    try:
        return bool(airflow.api.health())
    except OSError:
        return False
