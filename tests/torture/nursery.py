"""The process that tasks are forked from, and those that run."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.torture.files import read, write

KILL_SECONDS = 5.0
"""Between asking a task to stop and killing it, as in Airflow."""


@dataclass
class Working:
    """A task's process, from its beginning to its end."""

    pid: int
    ended: threading.Event = field(default_factory=threading.Event)


class Nursery:
    """A context manager: tasks run inside the block."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder, self._environment = folder, dict(environment)
        self._begin = threading.Lock()
        self._begun: queue.Queue[Working] = queue.Queue()
        self.working: dict[int, Working] = {}
        self._count = 0

    def __enter__(self) -> Nursery:
        self._folder.mkdir(parents=True)
        surroundings = {**os.environ, **self._environment}
        surroundings["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        with (self._folder / "nursery.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.torture.task"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=surroundings,
            )
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in list(self.working.values()):
            kill(each.pid)
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(30)

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            told = json.loads(line)
            if "ended" in told:
                self.working.pop(told["ended"]).ended.set()
            else:
                begun = self.working[told["pid"]] = Working(told["pid"])
                self._begun.put(begun)

    def begin(self, spec: dict[str, Any], environment: Mapping[str, str]) -> tuple[Working, Path]:
        """Start a task; its outcome is in the file as soon as it has one."""
        with self._begin:
            self._count += 1
            path = self._folder / f"{self._count}.json"
            write(path, {**spec, "log": str(path.with_suffix(".log")), "environment": dict(environment)})
            assert self._process.stdin
            self._process.stdin.write(f"{path}\n".encode())
            self._process.stdin.flush()
            return self._begun.get(timeout=60), path.with_suffix(".outcome")

    def run(self, spec: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
        working, outcome = self.begin(spec, environment)
        working.ended.wait()
        return read(outcome) or {"outcome": "killed", "error": None, "again": True}

    def stop(self, working: Working) -> None:
        """Stop a task as Airflow does: it is asked to, and killed if it goes on."""
        signal_to(working.pid, signal.SIGTERM)
        if not working.ended.wait(KILL_SECONDS):
            kill(working.pid)


def kill(pid: int) -> None:
    signal_to(pid, signal.SIGKILL)


def signal_to(pid: int, number: int) -> bool:
    """Send a signal; False for a process that is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
