"""The part of Airflow's REST API that the demo and the tests need."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError

from airflow_provider_kpipe.sandbox.errors import SandboxError
from demo.airflow_settings import LOCK_SECONDS, Connection

# SQLite makes writers wait for each other.
ANSWER_SECONDS = LOCK_SECONDS + 10.0
TRIES = 5
POLL_SECONDS = 0.2
# Airflow's answers when SQLite has rejected a writer.
LOCKED = {
    HTTPStatus.INTERNAL_SERVER_ERROR: "Database error",
    HTTPStatus.SERVICE_UNAVAILABLE: "Database is locked",
}
FINISHED = frozenset({"success", "failed"})


class AirflowApiError(SandboxError):
    """Rejection of a request by Airflow; `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class DagImportError:
    """A DAG file that cannot be imported, with Airflow's text."""

    file: str
    text: str


class AirflowApi:
    """A client of an Airflow that asks for no password. Its methods raise OSError while Airflow does not answer."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._token: str | None = None

    def health(self) -> dict[str, str | None]:
        """Return the status of each component: None, "healthy" or "unhealthy"."""
        components = self._send("GET", "/api/v2/monitor/health", signed=False)
        return {name: (found or {}).get("status") for name, found in components.items()}

    def dags(self) -> set[str]:
        """Return the ids of the DAGs that are parsed."""
        return {each["dag_id"] for each in self._send("GET", "/api/v2/dags?limit=100")["dags"]}

    def import_errors(self) -> list[DagImportError]:
        found = self._send("GET", "/api/v2/importErrors")["import_errors"]
        return [DagImportError(each["filename"], each["stack_trace"]) for each in found]

    def add_connection(self, conn_id: str, connection: Connection) -> None:
        extra = json.dumps(connection.get("extra", {}))
        self._send("POST", "/api/v2/connections", {**connection, "connection_id": conn_id, "extra": extra})

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None, *, run_id: str | None = None) -> DagRun:
        """Start a run as the form in the UI does; without a `run_id`, Airflow chooses one."""
        body = {"logical_date": None, "conf": dict(conf or {}), **({"dag_run_id": run_id} if run_id else {})}
        run = self._send("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)
        return DagRun(self, dag_id, run["dag_run_id"])

    def backfill(self, dag_id: str, first: datetime, last: datetime, *, again: bool = False) -> list[DagRun]:
        """Start a backfill as the UI's Backfill button does; return the runs that it has started, or started again."""
        dates = {"from_date": first.isoformat(), "to_date": last.isoformat()}
        behavior = "completed" if again else "none"
        self._send("POST", "/api/v2/backfills", {"dag_id": dag_id, **dates, "reprocess_behavior": behavior})
        runs = self._send("GET", f"/api/v2/dags/{dag_id}/dagRuns?run_type=backfill")["dag_runs"]
        moments = {run["dag_run_id"]: datetime.fromisoformat(run["logical_date"]) for run in runs}
        return [DagRun(self, dag_id, run_id) for run_id, moment in moments.items() if first <= moment <= last]

    def _send(self, method: str, path: str, body: Any = None, *, signed: bool = True) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if signed:
            if self._token is None:
                self._token = self._send("GET", "/auth/token", signed=False)["access_token"]
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        for _ in range(TRIES - 1):
            try:
                return _answer(request)
            except AirflowApiError as error:
                if not any(error.status == status and said in str(error) for status, said in LOCKED.items()):
                    raise
            # SQLite rejects a writer if another one changes rows that it has read; Airflow has rolled it back.
            time.sleep(POLL_SECONDS)
        return _answer(request)


def _answer(request: urllib.request.Request) -> Any:
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)
    except HTTPError as error:
        with error:
            said = error.read().decode(errors="replace")
        raise AirflowApiError(
            error.code, f"{request.method} {request.selector}: Airflow answered {error.code}: {said}"
        ) from error


@dataclass(frozen=True, slots=True)
class DagRun:
    """One run of a DAG."""

    api: AirflowApi
    dag_id: str
    run_id: str

    @property
    def page(self) -> str:
        """The run's page in the UI."""
        return f"{self.api.url}/dags/{self.dag_id}/runs/{urllib.parse.quote(self.run_id, safe='')}"

    def state(self) -> str:
        return str(self._send("GET", self._path)["state"])

    def wait(self, timeout: float) -> str:
        """Wait for the end of the run; return its final state."""
        deadline = time.monotonic() + timeout
        while (state := self.state()) not in FINISHED:
            if time.monotonic() > deadline:
                raise SandboxError(
                    f"run {self.run_id!r} of {self.dag_id!r} is still {state!r} after {timeout} s; "
                    f"its tasks are {self.task_states()}"
                )
            time.sleep(POLL_SECONDS)
        return state

    def task_states(self) -> dict[str, str | None]:
        return {each["task_id"]: each["state"] for each in self._tasks()}

    def seconds(self) -> float:
        """Return the seconds from the trigger of the run to the end of its last task."""
        return max(ended for _, _, ended in self.task_times().values())

    def task_times(self) -> dict[str, tuple[float, float, float]]:
        """Return the seconds from the trigger until each task was queued, started and ended."""
        begin = datetime.fromisoformat(self._send("GET", self._path)["queued_at"])
        moments = ("queued_when", "start_date", "end_date")
        times = {
            each["task_id"]: [(datetime.fromisoformat(each[moment]) - begin).total_seconds() for moment in moments]
            for each in self._tasks()
        }
        return {task_id: (queued, started, ended) for task_id, (queued, started, ended) in times.items()}

    def tries(self, task_id: str) -> int:
        return next(int(each["try_number"]) for each in self._tasks() if each["task_id"] == task_id)

    def xcom(self, task_id: str, key: str = "return_value") -> Any:
        """Return the XCom that a task has pushed; None if there is none."""
        try:
            return self._send("GET", f"{self._task_path(task_id)}/xcomEntries/{key}")["value"]
        except AirflowApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def log(self, task_id: str, try_number: int | None = None) -> str:
        """Return the log of a task's last try, or of another, with a line per message and the text of errors."""
        number = self.tries(task_id) if try_number is None else try_number
        answer = self._send("GET", f"{self._task_path(task_id)}/logs/{number}?full_content=true")
        return "\n".join(line if isinstance(line, str) else _log_line(line) for line in answer["content"])

    def clear(self, task_ids: Sequence[str], *, downstream: bool = False) -> None:
        """Let tasks run again."""
        self._send(
            "POST",
            f"/api/v2/dags/{self.dag_id}/clearTaskInstances",
            {
                "dag_run_id": self.run_id,
                "task_ids": list(task_ids),
                "include_downstream": downstream,
                "only_failed": False,
                "dry_run": False,
            },
        )

    def mark_failed(self, task_id: str) -> None:
        """Mark a task as failed, as a user does in the UI: Airflow ends a running task."""
        self._send("PATCH", self._task_path(task_id), {"new_state": "failed"})

    @property
    def _path(self) -> str:
        return f"/api/v2/dags/{self.dag_id}/dagRuns/{urllib.parse.quote(self.run_id, safe='')}"

    def _task_path(self, task_id: str) -> str:
        return f"{self._path}/taskInstances/{task_id}"

    def _tasks(self) -> list[dict[str, Any]]:
        return list(self._send("GET", f"{self._path}/taskInstances")["task_instances"])

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        return self.api._send(method, path, body)


def _log_line(message: Mapping[str, Any]) -> str:
    # The text of an exception is in its details, not in the event.
    errors = [f"{each['exc_type']}: {each['exc_value']}" for each in message.get("error_detail") or ()]
    return "\n".join([str(message["event"]), *errors])
