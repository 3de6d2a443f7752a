"""Measured processes: a whole submit, or a session that waits for its turn."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any

from airflow_provider_kpipe import die_with_parent
from airflow_provider_kpipe.sandbox.errors import tail
from bench.work import BenchError

HERE = Path(__file__).parent
DRIVERS, TASKS = HERE / "drivers", HERE / "tasks"

ANSWER_SECONDS = 600.0
STOP_SECONDS = 20.0

Watch = Callable[[int], AbstractContextManager[object]]


def own_environment() -> dict[str, str]:
    """Return the variables of this process, without those of Python and Spark."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SPARK_"))}


def spark_environment(python: Path) -> dict[str, str]:
    """Return the variables for a submit in local mode, in the environment of that Python."""
    environment = own_environment()
    site = next(python.parent.parent.glob("lib/python3*/site-packages"))
    return {
        **environment,
        "PATH": os.pathsep.join([str(python.parent), environment.get("PATH", os.defpath)]),
        "PYSPARK_PYTHON": str(python),
        "SPARK_HOME": str(site / "pyspark"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def driver_environment(python: Path) -> dict[str, str]:
    """Return the variables for a plain Python process of that environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = os.pathsep.join([str(python.parent), environment.get("PATH", os.defpath)])
    return {**environment, "PATH": path, "PYTHONPATH": str(TASKS)}


def whole_run(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    watch: Watch = lambda pid: contextlib.nullcontext(),
) -> float:
    """Run a process in the folder of its log; return the seconds from its start to its end."""
    with log.open("ab") as output:
        begin = time.perf_counter()
        process = _start(command, environment, log.parent, subprocess.DEVNULL, output, output)
        with _ended_after(process), watch(process.pid):
            code = process.wait(ANSWER_SECONDS)
        seconds = time.perf_counter() - begin
    if code != 0:
        raise BenchError(f"{Path(command[0]).name} ended with {code}. The end of its log:\n{_tail(log)}")
    return seconds


class Session:
    """A driver that stays up and answers requests: one JSON line in, one JSON line out.

    It works in the folder of its log: Spark leaves a folder `artifacts` in its working directory.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = _start(command, environment, log.parent, subprocess.PIPE, subprocess.PIPE, errors)
        self._answers: Queue[dict[str, Any]] = Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._answer()

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the driver's answer, with the seconds that the driver measured itself."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """Close stdin, which ends the driver; kill it if it does not end."""
        with _ended_after(self._process), contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(STOP_SECONDS)
        self._listener.join()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(json.loads(line))
        self._answers.put({"error": "the driver ended"})

    def _answer(self) -> dict[str, Any]:
        try:
            answer = self._answers.get(timeout=ANSWER_SECONDS)
        except Empty:
            answer = {"error": f"no answer within {ANSWER_SECONDS:.0f} s"}
        if "error" in answer:
            self.close()
            raise BenchError(f"{answer['error']}. The end of its log:\n{_tail(self._log)}")
        return answer


def _start(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    stdin: int,
    stdout: int | IO[bytes],
    stderr: IO[bytes],
) -> subprocess.Popen[bytes]:
    # The child is killed when this process ends; with a session of its own, its process group can be killed as a whole.
    launcher = [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())]
    return subprocess.Popen(
        [*launcher, *command],
        cwd=folder,
        env=dict(environment),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


@contextlib.contextmanager
def _ended_after(process: subprocess.Popen[bytes]) -> Any:
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _tail(log: Path) -> str:
    return tail(log.read_text(errors="replace"), lines=40)
