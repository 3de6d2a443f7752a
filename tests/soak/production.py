"""Production: a run every few seconds, a redrive now and then, and what they tell when they have ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from airflow_provider_kpipe.sandbox.errors import SandboxError, tail
from demo.airflow_api import FINISHED, AirflowApi, DagRun
from tests.soak.accounts import Told, told_by_checkpoint, told_by_redrive

RUN_DAG, REDRIVE_DAG = "soak", "soak_redrive"
EVERY_SECONDS = 20.0
RUNS_PER_REDRIVE = 4
RUN_SECONDS = 300.0
LOOK_SECONDS = 0.5
TARGETS = ("source", "output")


@dataclass
class Production:
    """Starts runs one after the other, and keeps what each has told."""

    api: AirflowApi
    say: Callable[[str], None]
    starts: list[float] = field(default_factory=list)
    """The wall clock's seconds at which the runs have started."""
    redrives: list[DagRun] = field(default_factory=list)
    checkpoints_told: Told = field(default_factory=Told)
    redrives_told: Told = field(default_factory=Told)
    misses: list[str] = field(default_factory=list)
    _under_way: DagRun | None = None
    """The redrive that runs beside."""

    def go_on_for(self, seconds: float) -> None:
        """A run every so often, or as often as one comes to its end, with a redrive beside every fourth."""
        until = time.time() + seconds
        while (started := time.time()) < until:
            number = len(self.starts)
            if number % RUNS_PER_REDRIVE == RUNS_PER_REDRIVE - 1:
                self.redrive(TARGETS[len(self.redrives) % len(TARGETS)])
            self.run()
            time.sleep(max(0.0, started + EVERY_SECONDS - time.time()))

    def run(self) -> None:
        """One run of the pipeline, to its end."""
        number = len(self.starts)
        self.starts.append(time.time())
        run = self.api.trigger(RUN_DAG, run_id=f"run-{number}")
        seen = _follow(run)
        told = told_by_checkpoint(run.xcom("soak.checkpoint", "checkpoint") or {"partitions": []})
        self.checkpoints_told += told
        if self._is_green(run) and told.read and "deferred" not in seen.get("gate", set()):
            self.misses.append(f"the gate of run {run.run_id!r} was not deferred: it soaks no triggerer")
        self.say(f"{run.run_id}: {run.state()}, {told.read:,} records in {time.time() - self.starts[-1]:.0f} s")

    def redrive(self, target: str) -> None:
        """Start a redrive, after the one before it has ended."""
        self.finish_redrive()
        self._under_way = self.api.trigger(REDRIVE_DAG, {"target": target}, run_id=f"redrive-{len(self.redrives)}")
        self.redrives.append(self._under_way)

    def finish_redrive(self) -> None:
        """Wait for the redrive that is under way, if one is."""
        run, self._under_way = self._under_way, None
        if run is None:
            return
        _follow(run)
        self._is_green(run)
        document = run.xcom("redrive")
        if document is not None:
            self.redrives_told += told_by_redrive(document)
            redriven = {name: count for name, count in document["outcomes"].items() if count}
            self.say(f"{run.run_id} to the {document['target']}: {run.state()}, {redriven}")

    def _is_green(self, run: DagRun) -> bool:
        states = run.task_states()
        if run.state() == "success":
            return True
        failed = [task_id for task_id, state in states.items() if state == "failed"]
        logs = "\n".join(tail(run.log(task_id), lines=15) for task_id in failed[:1])
        self.misses.append(f"run {run.run_id!r} of {run.dag_id!r} is not green: {states}. {logs}")
        self.say(self.misses[-1])
        return False


def _follow(run: DagRun) -> dict[str, set[str]]:
    """Wait for the end of a run; in which states its tasks were seen."""
    deadline = time.monotonic() + RUN_SECONDS
    seen: dict[str, set[str]] = {}
    while True:
        for task_id, state in run.task_states().items():
            seen.setdefault(task_id, set()).add(state or "")
        if run.state() in FINISHED:
            return seen
        if time.monotonic() > deadline:
            raise SandboxError(f"run {run.run_id!r} has not ended after {RUN_SECONDS:.0f} s: {run.task_states()}")
        time.sleep(LOOK_SECONDS)
