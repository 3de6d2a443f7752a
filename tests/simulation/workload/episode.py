"""One schedule from its seed to its anomalies."""

from __future__ import annotations

import hashlib
import itertools
import traceback
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from tests.kit import pipelines
from tests.promises.comparison import check
from tests.promises.properties import REFUSED, Anomaly
from tests.simulation.processes import Task
from tests.simulation.stage import STAGE
from tests.simulation.workload.drain import drain, found
from tests.simulation.workload.fates import Fate
from tests.simulation.workload.hands import Feeder, Operator
from tests.simulation.workload.limits import limited
from tests.simulation.workload.redrives import RedriveRun
from tests.simulation.workload.runs import DagRun
from tests.simulation.workload.scene import Scene
from tests.simulation.workload.script import Script, Step
from tests.simulation.workload.watch import Watch
from tests.simulation.workload.world import World


@dataclass(slots=True)
class Result:
    """What a schedule was, and what was wrong with it."""

    script: Script
    anomalies: list[Anomaly]
    trace: list[tuple[object, ...]]
    fates: list[Fate]
    """Those that have befallen somebody."""
    calls: int
    switches: int
    seen: Counter[str] = field(default_factory=Counter)

    @property
    def digest(self) -> str:
        return hashlib.sha256("\n".join(map(repr, self.trace)).encode()).hexdigest()[:16]

    @property
    def broken(self) -> list[str]:
        """The names of the promises."""
        return sorted({each.promise.name for each in self.anomalies})


def play(script: Script, given: Collection[Fate] | None = None) -> Result:
    """Run a schedule; with fates that are given, nothing else befalls anybody."""
    pipelines.CLOCKS = itertools.count()
    with limited(script.setup):
        scene = Scene(script, given)
        world = World(script, scene)
        episode = Episode(world)
        try:
            episode.run()
        except Exception:  # noqa: BLE001  # it is said with the schedule that has come to it
            world.flag(REFUSED.broken(f"the schedule has no end: {traceback.format_exc()[-1_500:]}"))
    STAGE.clear()
    trace = scene.play.trace
    seen = Counter(str(each[2]) for each in trace if len(each) > 2 and str(each[2]).isupper())
    del seen["FATE"]
    return Result(
        script, world.model.anomalies, trace, scene.play.mine.taken, scene.play.calls, scene.play.switches, seen
    )


class Episode:
    """The steps of a script, one after another or side by side."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.runs: list[Task] = []
        self.watch = Watch(world)

    def run(self) -> None:
        world, scene = self.world, self.world.scene
        feeder = Feeder(world)
        feeder.begin()
        feeding = scene.spawn("feeder", "feeder", feeder.go_on)
        days = scene.spawn("days", "days", lambda: self.days(feeding))
        scene.play.run()
        for task in (feeding, days):
            if task.error is not None:
                raise task.error
        scene.cluster.settle()
        check(world.model, found(world))

    def days(self, feeding: Task) -> None:
        scene = self.world.scene
        for step in self.world.script.steps:
            self.take(step)
        scene.wait(lambda: all(each.done for each in self.runs))
        for task in self.runs:
            self.world.heed(task)
        drain(self.world, feeding)

    def take(self, step: Step) -> None:
        world, scene = self.world, self.world.scene
        rnd = world.script.random("step", step.number)
        body = self.body(step, Operator(world, rnd, self.runs))
        if body is None:
            return
        task = scene.spawn(f"s{step.number} {step.kind}", "step", body)
        self.runs.append(task)
        if step.waits:
            scene.wait(lambda: task.done)
        else:
            scene.sleep(step.pause)
        if world.asked and rnd.random() < 0.1:
            rnd.choice(world.asked).request("somebody asks")

    def body(self, step: Step, operator: Operator) -> Callable[[], object] | None:
        world, name, rnd = self.world, f"r{step.number}", self.world.script.random("run", step.number)
        run = DagRun(world, name, rnd)
        match step.kind:
            case "live":
                wishes: dict[str, Any] = {"max_records": rnd.choice((5, 20))} if rnd.random() < 0.3 else {}
                return lambda: run.go(**wishes)
            case "backfill":
                return lambda: run.window("backfill")
            case "published":
                return lambda: run.window("published")
            case "idle":
                return run.idle
            case "torn":
                return run.torn
            case "unseen":
                return run.unseen
            case "clear":
                return lambda: self.clear(run)
            case "redrive":
                return RedriveRun(world, name, rnd).redrive
        getattr(operator, step.kind)()
        return None

    def clear(self, run: DagRun) -> None:
        """Somebody clears tasks of any run, also of one that is at work."""
        if not self.world.orders:
            return
        order = run.rnd.choice(self.world.orders)
        self.world.log("CLEAR", order.key)
        if run.rnd.random() < 0.7:
            run.attempt(order)
        if run.rnd.random() < 0.7:
            run.checkpoint(order)
