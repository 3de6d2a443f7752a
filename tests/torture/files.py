"""The part of Airflow's database that a DAG run needs, in files: XComs and task state outlive whoever wrote them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RETURN_KEY = "return_value"


def write(path: Path, document: Any) -> None:
    """Write all of it or nothing, whenever the process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{uuid.uuid4().hex}")
    draft.write_text(json.dumps(document))
    os.replace(draft, path)


def read(path: Path) -> Any:
    """Read a document; None where nobody has written it."""
    with contextlib.suppress(FileNotFoundError):
        return json.loads(path.read_text())
    return None


@dataclass(frozen=True)
class DagRunFiles:
    """One run of a DAG; its runs come in the order of their numbers."""

    dag: Path
    number: int

    @property
    def run_id(self) -> str:
        return f"run-{self.number}"

    def task(self, task_id: str) -> Path:
        return self.dag / self.run_id / task_id

    def xcom(self, task_id: str, key: str = RETURN_KEY) -> Path:
        return self.task(task_id) / "xcom" / f"{key}.json"

    def forget_xcoms(self, task_id: str) -> None:
        """Forget them as Airflow does when a try begins."""
        shutil.rmtree(self.task(task_id) / "xcom", ignore_errors=True)

    def forget_state(self, task_id: str) -> None:
        """Forget it as Airflow does on success where it is told to."""
        shutil.rmtree(self.task(task_id) / "state", ignore_errors=True)

    def prior(self) -> Iterator[DagRunFiles]:
        """Yield this one and those before it, the latest first."""
        return (DagRunFiles(self.dag, each) for each in range(self.number, 0, -1))


class TaskState:
    """Airflow's task state store."""

    def __init__(self, files: DagRunFiles, task_id: str) -> None:
        self._folder = files.task(task_id) / "state"

    def get(self, key: str, default: Any = None) -> Any:
        found = read(self._folder / f"{key}.json")
        return default if found is None else found

    def set(self, key: str, value: Any, **_: Any) -> None:
        write(self._folder / f"{key}.json", value)


class TaskInstance:
    """A task's own name in a context, and its way to XComs."""

    map_index = -1

    def __init__(self, files: DagRunFiles, task_id: str) -> None:
        self._files = files
        self.dag_id, self.run_id, self.task_id = files.dag.name, files.run_id, task_id

    def xcom_push(self, key: str, value: Any) -> None:
        write(self._files.xcom(self.task_id, key), value)

    def xcom_pull(self, task_ids: str, key: str = RETURN_KEY, include_prior_dates: bool = False, **_: Any) -> Any:
        runs = self._files.prior() if include_prior_dates else iter([self._files])
        return next((found for run in runs if (found := read(run.xcom(task_ids, key))) is not None), None)
