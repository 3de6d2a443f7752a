"""The DAG runs of one pipeline: each task in a process of its own, tried again as Airflow would, and cleared later."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from tests.torture.files import DagRunFiles, read
from tests.torture.history import Fate, History, Kind, RunKind, Task
from tests.torture.nursery import Nursery
from tests.torture.pipelines import MENDED, Victim

TRIES: Mapping[Task, int] = {"plan": 4, "run": 3, "checkpoint": 4, "redrive": 3}
RETRY_SECONDS = 1.0
COUNTS = ("read", "written", "dead_lettered", "filtered", "skipped", "retried", "lost")
KIT = str(Path(__file__).with_name("torture_kit.py"))


@dataclass
class DagRun:
    """One run, and the pipeline its tasks are made of."""

    files: DagRunFiles
    kind: RunKind
    pipeline: KafkaPipeline
    arguments: dict[Task, dict[str, Any]] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    clock: float = 0.0
    attempts: Counter[str] = field(default_factory=Counter)
    planned: bool = False
    green: bool = False
    is_empty: bool = False
    """Whether its plan has nothing to read."""

    busy: threading.Lock = field(default_factory=threading.Lock)
    """Airflow runs no task twice at once."""

    @property
    def key(self) -> str:
        """Name the run as the operators do."""
        first = "redrive" if self.kind == "redrive" else "plan"
        return f"{self.files.dag.name}/{self.files.run_id}/{first}"


class Runs:
    """The runs of a pipeline. Its group is moved by hand only while none of them is at work."""

    def __init__(self, victim: Victim, folder: Path, nursery: Nursery, history: History) -> None:
        self.victim = victim
        self._folder, self._nursery, self._history = folder, nursery, history
        self._numbers = itertools.count(1)
        self._gate = threading.Lock()
        self._planning = threading.Lock()
        self.at_work = 0
        self.last_begun = 0.0
        self.past: list[DagRun] = []
        self.may_reset = False
        """Whether a checkpoint has come to its end since the group was moved by hand."""

    @contextmanager
    def working(self) -> Iterator[None]:
        with self._gate:
            self.at_work += 1
            self.last_begun = time.monotonic()
        try:
            yield
        finally:
            with self._gate:
                self.at_work -= 1

    @contextmanager
    def quiet(self) -> Iterator[bool]:
        """Let nothing begin meanwhile; False if something is at work."""
        with self._gate:
            yield not self.at_work

    def new(self, kind: RunKind, rnd: random.Random | None, **wishes: Any) -> DagRun:
        """Draw the arguments of a run; without a source of chance, those of somebody who wants it done."""
        dag = self._folder / (self.victim.name if kind == "live" else f"{self.victim.name}.{kind}")
        pipeline = self.victim.fixed if kind == "redrive" else self.victim.pipeline
        run = DagRun(DagRunFiles(dag, next(self._numbers)), kind, pipeline)
        own: dict[str, Any] = {"py_files": [KIT], "progress_interval": 2.0}
        if rnd is not None:
            if rnd.random() < 0.15:
                run.clock = rnd.choice((-3 * 3600.0, -90.0, 45.0, 2 * 3600.0))
            if rnd.random() < 0.12:
                own["max_run_time"] = rnd.uniform(4.0, 9.0)
        run.arguments = {"plan": wishes, "run": own, "redrive": own}
        return run

    def live(self, run: DagRun, patience: int = 1) -> None:
        """Plan, run, checkpoint."""
        with self.working(), run.busy:
            if not self._plan(run, patience):
                return
            self.past.append(run)
            self._run_and_check(run, patience)

    def again(self, run: DagRun, forget: bool) -> None:
        """Clear the tasks of an earlier run, whose plan stays."""
        with self.working(), run.busy:
            if forget:
                for task in ("run", "checkpoint"):
                    run.files.forget_state(task)
            self._run_and_check(run, 1)

    def _plan(self, run: DagRun, patience: int) -> bool:
        # Nobody moves the group meanwhile.
        with self._planning:
            if self._task(run, "plan", patience) != "success":
                return False
            self._note_plan(run, read(run.files.xcom("plan")))
            return True

    def _run_and_check(self, run: DagRun, patience: int) -> None:
        self._task(run, "run", patience)
        run.green = self._task(run, "checkpoint", patience) == "success"
        if run.green and run.kind == "live":
            self.may_reset = True

    def redrive(self, run: DagRun, patience: int = 1) -> None:
        with self.working(), run.busy:
            self._task(run, "redrive", patience)

    def _note_plan(self, run: DagRun, plan: Mapping[str, Any], fates: Mapping[Kind, Fate] | None = None) -> None:
        if run.planned:
            return
        run.planned = True
        run.is_empty = all(each["start"] >= each["end"] for each in plan["ranges"])
        self._history.planned(
            pipeline=self.victim.name,
            run=plan["run_key"],
            kind=run.kind,
            number=plan["number"],
            group=plan["group"],
            topic=plan["topic"],
            ranges={each["partition"]: (each["start"], each["end"]) for each in plan["ranges"]},
            fates=fates,
        )

    def _task(self, run: DagRun, task: Task, patience: int) -> str:
        """Try as often as Airflow would, until it does not fail."""
        outcome: dict[str, Any] = {"outcome": "failed"}
        for attempt in range(TRIES[task] * patience):
            if attempt:
                time.sleep(RETRY_SECONDS)
            outcome = self._try(run, task)
            if not outcome["again"]:
                break
        return str(outcome["outcome"])

    def _try(self, run: DagRun, task: Task) -> dict[str, Any]:
        run.attempts[task] += 1
        told: dict[str, Any] = {"pipeline": self.victim.name, "run": run.key, "task": task}
        told["attempt"] = run.attempts[task]
        self._history.task_begun(**told)
        outcome = self._nursery.run(
            {
                "dag": str(run.files.dag),
                "number": run.files.number,
                "task": task,
                "pipeline": run.pipeline.to_json(),
                "arguments": run.arguments.get(task, {}),
                "params": run.params,
                "clock": run.clock,
            },
            {"AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": self.victim.master})},
        )
        self._history.task_ended(**told, outcome=outcome["outcome"], error=outcome["error"])
        if task == "checkpoint":
            self._tell_checkpoint(run, outcome["outcome"] == "success")
        elif task == "redrive":
            self._tell_redrive(run)
        return outcome

    def _tell_checkpoint(self, run: DagRun, green: bool) -> None:
        told = read(run.files.xcom("checkpoint", "checkpoint"))
        if told is None:
            return
        wanted = ("partition", "start", "end", "committed", "complete")
        partitions = [
            {**{name: each[name] for name in wanted}, **{name: each["counts"][name] for name in COUNTS}}
            for each in told["partitions"]
        ]
        self._history.checkpoint_told(pipeline=self.victim.name, run=run.key, green=green, partitions=partitions)

    def _tell_redrive(self, run: DagRun) -> None:
        order = read(run.files.task("redrive") / "state" / "kpipe_redrive.json")
        if order is not None:
            self._note_plan(run, order["plan"], MENDED)
        told = read(run.files.xcom("redrive", "progress"))
        if told is None or order is None:
            return
        self._history.redrive_told(
            pipeline=self.victim.name,
            run=run.key,
            complete=told["complete"],
            outcomes=told["outcomes"],
            written=told["written"],
            dead_lettered=told["dead_lettered"],
        )
