"""One task of a DAG run in a process of its own, with the real operator; a nursery forks them, to import Airflow once.

The nursery reads the path of a specification on each line, and prints the pid of who works on it, and how it ended.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time
import traceback
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.operators import plan, redrive
from airflow_provider_kpipe.operators.checkpoint import KpipeCheckpointOperator
from airflow_provider_kpipe.operators.plan import KpipePlanOperator
from airflow_provider_kpipe.operators.redrive import KpipeRedriveOperator, redrive_params
from airflow_provider_kpipe.operators.run import KpipeRunOperator
from airflow_provider_kpipe.planning import ranges as planner
from tests.torture.files import DagRunFiles, TaskInstance, TaskState, read, write

PR_SET_PDEATHSIG = 1
LOOK_SECONDS = 0.05
SHORTEST_PIECE = 120
"""So that what lies in a topic here is enough to be cut."""


def main() -> None:
    """Fork for each line, and tell of each that has ended; without a parent there is nothing to do."""
    libc = ctypes.CDLL(None)
    working: set[int] = set()
    # What is read ahead into a buffer, select would not see.
    lines = os.fdopen(0, "rb", buffering=0)
    while True:
        if select.select([lines], [], [], LOOK_SECONDS)[0]:
            line = lines.readline()
            if not line:
                return
            nursery = os.getpid()
            pid = os.fork()
            if pid == 0:
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != nursery:
                    os._exit(1)
                work(Path(line.decode().strip()))
            working.add(pid)
            say({"spec": line.decode().strip(), "pid": pid})
        for pid in list(working):
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                working.discard(pid)
                say({"ended": pid})


def say(told: dict[str, Any]) -> None:
    os.write(1, json.dumps(told).encode() + b"\n")


def work(path: Path) -> None:
    """Be one task, with a log of its own, and end."""
    os.setsid()
    spec = read(path)
    log = os.open(spec["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number, target in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
        os.dup2(target, number)
    os.environ |= spec["environment"]
    set_clock(spec["clock"])
    planner.SHORTEST_PIECE = SHORTEST_PIECE
    write(path.with_suffix(".outcome"), execute(spec))
    sys.stdout.flush()
    os._exit(0)


def execute(spec: dict[str, Any]) -> dict[str, Any]:
    """Execute the operator as Airflow does; the return value goes to XCom."""
    try:
        files = DagRunFiles(Path(spec["dag"]), spec["number"])
        files.forget_xcoms(spec["task"])
        operator = make(spec, files)
        signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())
        instance = TaskInstance(files, spec["task"])
        context = {
            "ti": instance,
            "task_state_store": TaskState(files, spec["task"]),
            "params": spec.get("params", {}),
            "dag_run": SimpleNamespace(run_type="manual", conf={}),
        }
        instance.xcom_push("return_value", operator.execute(context))
    except AirflowSkipException as skipped:
        return {"outcome": "skipped", "error": str(skipped), "again": False}
    except AirflowFailException as failure:
        return {"outcome": "failed", "error": str(failure), "again": False}
    except BaseException as failure:  # noqa: BLE001
        traceback.print_exc()
        return {"outcome": "failed", "error": f"{type(failure).__name__}: {failure}", "again": True}
    return {"outcome": "success", "error": None, "again": False}


def make(spec: dict[str, Any], files: DagRunFiles) -> Any:
    pipeline, own = KafkaPipeline.from_json(spec["pipeline"]), dict(spec["arguments"])
    match spec["task"]:
        case "plan":
            return KpipePlanOperator(task_id="plan", pipeline=pipeline, checkpoint_task_id="checkpoint", **own)
        case "run":
            return KpipeRunOperator(task_id="run", pipeline=pipeline, plan=read(files.xcom("plan")), **own)
        case "checkpoint":
            return KpipeCheckpointOperator(task_id="checkpoint", pipeline=pipeline, plan=read(files.xcom("plan")))
        case "redrive":
            return KpipeRedriveOperator(
                task_id="redrive", pipeline=pipeline, params=redrive_params(target=spec["params"]["target"]), **own
            )
    raise ValueError(f"no task is named {spec['task']!r}")


def set_clock(offset: float) -> None:
    """Make it earlier or later for this process, as clocks of hosts disagree."""
    now = time.time

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(seconds=offset)

    if offset:
        time.time = lambda: now() + offset
        plan.datetime = redrive.datetime = Clock  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
