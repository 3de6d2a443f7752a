"""A Spark task without Spark: in a process of its own, which can fork as a Python worker of Spark's can."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_provider_kpipe.contract.job import Job, pack, unpack
from airflow_provider_kpipe.contract.plan import Plan
from kpipe_engine.supervision.spark_task import run_task
from kpipe_engine.supervision.task_layout import Task
from tests.kit.pipelines import Bench

A_DAY_SECONDS = 86_400.0


def work_in_task(
    bench: Bench,
    plan: Plan,
    *,
    at_once: int = 1,
    tasks: int = 1,
    one_block: bool = False,
    job: Job | None = None,
    bounds: Mapping[str, float] | None = None,
    late: Path | None = None,
) -> tuple[list[dict[str, Any]], str]:
    """What the task reports of each partition, and what it said meanwhile. More tasks run one after another, as Spark
    lets a worker run them; `one_block` gives all partitions one writer, as neighbours of many have. `bounds` are
    constants of the engine that are to be others, such as `delivery.ANSWER_SECONDS`. For the task it
    is a day later as soon as the file `late` is there."""
    spec = {
        "job": pack(job or bench.attempt(plan)),
        "settings": pack(bench.kafka),
        "at_once": at_once,
        "tasks": tasks,
        "one_block": one_block,
        "bounds": dict(bounds or {}),
        "late": None if late is None else str(late),
    }
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, __file__], input=json.dumps(spec), capture_output=True, text=True, env=environment, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def main() -> None:
    spec = json.load(sys.stdin)
    for bound, seconds in spec["bounds"].items():
        module, _, name = bound.rpartition(".")
        assert hasattr(importlib.import_module(f"kpipe_engine.{module}"), name)
        setattr(importlib.import_module(f"kpipe_engine.{module}"), name, seconds)
    if spec["late"]:
        heed(Path(spec["late"]))
    plan = Job.from_json(unpack(spec["job"])).plan
    blocks = [plan.pending] if spec["one_block"] else plan.blocks
    for number in range(spec["tasks"]):
        task = Task(tuple(blocks[number :: spec["tasks"]]), spec["at_once"])
        for done in run_task(spec["job"], spec["settings"], task, number):
            print(json.dumps(done))  # noqa: T201


def heed(late: Path) -> None:
    now = time.time
    time.time = lambda: now() + (A_DAY_SECONDS if late.exists() else 0)


if __name__ == "__main__":
    main()
