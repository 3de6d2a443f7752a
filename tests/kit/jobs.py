"""Runs a pipeline as the run task does: a real spark-submit, in a process that can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import psutil

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive.redrive import Redrive
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.transactions.left_open import end_what_is_left_open
from tests.kit.pipelines import Bench

SEGMENTS = Path(__file__).parents[1] / "segments"
"""Modules that tests ship to executors."""
# A job that is not through by then never will be.
JOB_SECONDS = 300.0


class RunningJob:
    """The process that submits. What it says goes to a file: a pipe that nobody empties would hold it up."""

    def __init__(self, process: subprocess.Popen[str], said: IO[str], attempt: int) -> None:
        self._process, self._said = process, said
        self.pid, self.attempt = process.pid, attempt

    def wait(self, seconds: float | None = None) -> int:
        return self._process.wait(seconds)

    def output(self) -> str:
        """All of it, once the job has ended."""
        self.wait()
        self._said.seek(0)
        return self._said.read()


@contextmanager
def running_job(
    bench: Bench,
    plan: Plan,
    master: str = "local[2]",
    redrive: Redrive | None = None,
    spark_conf: Mapping[str, str] | None = None,
    deadline: float | None = None,
    grace_seconds: float = 60.0,
    **environment: str,
) -> Iterator[RunningJob]:
    """A job that goes on beside the block; whatever is left of it is gone after the block."""
    made = bench.attempt(plan, redrive, deadline=deadline, grace_seconds=grace_seconds)
    spec = {
        "job": made.to_json(),
        "settings": bench.settings,
        "registry": dict(bench.registry),
        "spark_conf": dict(spark_conf or {}),
    }
    command = [sys.executable, str(Path(__file__).with_name("submit.py"))]
    surroundings = {
        **os.environ,
        **environment,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "AIRFLOW_CONN_SPARK_TEST": json.dumps({"conn_type": "spark", "host": master}),
    }
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT, text=True, env=surroundings
        ) as process,
    ):
        assert process.stdin
        process.stdin.write(json.dumps(spec))
        process.stdin.close()
        seen: dict[int, psutil.Process] = {}
        try:
            seen = {each.pid: each for each in descendants(process.pid)}
            yield RunningJob(process, said, made.attempt)
        finally:
            seen |= {each.pid: each for each in descendants(process.pid)}
            process.kill()
            process.wait()
            for each in seen.values():
                if each.is_running():
                    each.kill()


def run_job(
    bench: Bench, plan: Plan, master: str = "local[2]", redrive: Redrive | None = None, **environment: Any
) -> tuple[int, str]:
    """Exit code and output of a job that is let alone."""
    with running_job(bench, plan, master, redrive, **environment) as job:
        return job.wait(JOB_SECONDS), job.output()


def end_transactions(bench: Bench, plan: Plan) -> None:
    """As the task does when its job has failed: a killed worker's keep even the stored offsets from being read."""
    if bench.pipeline.delivery == "exactly_once":
        with Positions(bench.settings) as positions:
            end_what_is_left_open(positions, bench.written_settings, plan)


def descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def python_workers(pid: int) -> list[psutil.Process]:
    """The supervisors: forked by Spark's daemon, which the JVM started."""
    return [each for each in descendants(pid) if _generation(each) == 1]


def partition_workers(pid: int) -> list[psutil.Process]:
    """The processes that run partition workers: forked by the supervisors."""
    return [each for each in descendants(pid) if _generation(each) == 2]


def driver_jvm(pid: int) -> psutil.Process:
    (jvm,) = [each for each in descendants(pid) if "org.apache.spark.deploy.SparkSubmit" in _cmdline(each)]
    return jvm


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come within {seconds:.0f} s"
        time.sleep(0.05)


def _cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _generation(process: psutil.Process) -> int:
    """How many forks it is away from Spark's daemon; -1 if it does not come of it."""
    if "pyspark.daemon" not in " ".join(_cmdline(process)):
        return -1
    try:
        parent = process.parent()
    except psutil.Error:
        return -1
    return 1 + _generation(parent) if parent is not None else -1
