"""A real Airflow as child processes, for the demo and the tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from airflow_provider_kpipe.sandbox.errors import SandboxError
from airflow_provider_kpipe.sandbox.ports import free_ports
from demo.airflow_api import AirflowApi, AirflowApiError
from demo.airflow_settings import Connection, airflow_environment
from demo.supervisor import PATIENCE_SECONDS, Programs

_AIRFLOW = [sys.executable, "-m", "airflow"]
# The programs of `airflow standalone`. That one always starts the log servers, which listen on every address of the
# machine, and it runs on when one of its components has died.
PROGRAMS = Programs(
    first={"migrate": [*_AIRFLOW, "db", "migrate"]},
    services={
        "api-server": [*_AIRFLOW, "api-server"],
        "dag-processor": [*_AIRFLOW, "dag-processor"],
        "scheduler": [*_AIRFLOW, "scheduler", "--skip-serve-logs"],
        "triggerer": [*_AIRFLOW, "triggerer", "--skip-serve-logs"],
    },
)
_SUPERVISOR = "demo.supervisor"
_POLL_SECONDS = 0.2


class SandboxAirflow:
    """API server, scheduler, DAG processor and triggerer on a free loopback port.

    A context manager: inside the block it is up, with the DAGs `wait_for` parsed. All its files are in `home`; without
    one it makes a temporary folder, which `stop` removes. Its processes end with this one, however this one ends.
    `database` is the address of its database, in SQLAlchemy's format; without one it uses a SQLite in its home.
    """

    def __init__(
        self,
        dags: Path,
        *,
        connections: Mapping[str, Connection] | None = None,
        wait_for: Collection[str] = (),
        home: Path | None = None,
        database: str | None = None,
        start_timeout: float = 120.0,
    ) -> None:
        self._dags = dags.absolute()
        self._connections = dict(connections or {})
        self._wait_for = frozenset(wait_for)
        self._given_home = home.absolute() if home else None
        self._home = self._given_home
        self._database = database
        self._start_timeout = start_timeout
        self._api: AirflowApi | None = None
        self._supervisor: subprocess.Popen[bytes] | None = None

    @property
    def api(self) -> AirflowApi:
        if self._api is None:
            raise SandboxError("Airflow has no address before its first start(): call start() first")
        return self._api

    @property
    def url(self) -> str:
        """The address of the UI."""
        return self.api.url

    @property
    def home(self) -> Path:
        """The folder of its database and of the logs of its components and tasks."""
        if self._home is None:
            raise SandboxError("Airflow has no home while it is stopped: call start() first")
        return self._home

    @property
    def pid(self) -> int:
        """The pid of the supervisor, the ancestor of all its processes."""
        if self._supervisor is None:
            raise SandboxError("Airflow is not running: call start() first")
        return self._supervisor.pid

    def start(self) -> Self:
        """Start it, and wait until it can run DAGs."""
        self.launch()
        self.wait_until_ready()
        return self

    def launch(self) -> None:
        """Start it without waiting: it comes up while the caller does something else."""
        if self._supervisor is not None:
            raise SandboxError(f"Airflow is already running, below pid {self._supervisor.pid}")
        if not self._dags.is_dir():
            raise SandboxError(f"there is no DAG folder {self._dags}: give the folder that holds the DAG files")
        self._home = self._home or Path(tempfile.mkdtemp(prefix="kpipe-airflow-"))
        try:
            (self._home / "tmp").mkdir(parents=True, exist_ok=True)
            (port,) = free_ports(1)
            self._api = AirflowApi(f"http://127.0.0.1:{port}")
            with self._log.open("wb") as log:
                self._supervisor = subprocess.Popen(
                    [sys.executable, "-m", _SUPERVISOR, PROGRAMS.to_text()],
                    cwd=self._home,
                    env=airflow_environment(self._home, self._dags, port, self._connections, database=self._database),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # A Ctrl-C in the terminal reaches only this process, which then ends the others in order.
                    start_new_session=True,
                )
        except BaseException:
            self.stop()
            raise

    def wait_until_ready(self) -> None:
        """Wait until every component is healthy and the DAGs `wait_for` are parsed; stop it if that fails."""
        deadline = time.monotonic() + self._start_timeout
        try:
            while (missing := self.missing()) is not None:
                if time.monotonic() > deadline:
                    raise SandboxError(
                        f"Airflow was not ready within start_timeout={self._start_timeout} s: {missing}; "
                        f"its logs are in {self.home}"
                    )
                time.sleep(_POLL_SECONDS)
        except BaseException:
            self.stop()
            raise

    def missing(self) -> str | None:
        """Describe what it still lacks to run DAGs, None if it is ready; raise if it has failed permanently."""
        if self._supervisor is None or self._supervisor.poll() is not None:
            raise SandboxError(f"Airflow did not start: {self._log.read_text(errors='replace').strip()}")
        try:
            health = self.api.health()
            for broken in self.api.import_errors():
                raise SandboxError(f"Airflow cannot import {broken.file} from {self._dags}:\n{broken.text}")
            unparsed = self._wait_for - self.api.dags()
        except AirflowApiError:
            raise
        except OSError:
            return "the API server does not answer"
        sick = sorted(name for name, status in health.items() if status != "healthy")
        if sick:
            return f"{', '.join(sick)} not healthy"
        return f"no DAG {', '.join(sorted(unparsed))} in {self._dags}" if unparsed else None

    def stop(self) -> None:
        """End all its processes, and remove its home if that is temporary."""
        if self._supervisor is not None:
            _end(self._supervisor)
            self._supervisor = None
        if self._given_home is None and self._home is not None:
            shutil.rmtree(self._home)
            self._home = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _log(self) -> Path:
        return self.home / "supervisor.log"


def _end(supervisor: subprocess.Popen[bytes]) -> None:
    """Close its stdin, which orders it to end everything; if it does not obey, kill all processes."""
    if supervisor.stdin is not None:
        supervisor.stdin.close()
    try:
        supervisor.wait(2 * PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        below = psutil.Process(supervisor.pid).children(recursive=True)
        supervisor.kill()
        for each in below:
            each.kill()
        supervisor.wait()
