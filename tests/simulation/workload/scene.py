"""A simulation in which each task has fates of its own, and the log of all that is written to outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from tests.simulation.fates import Fate as Struck
from tests.simulation.kafka.cluster import Cluster
from tests.simulation.kafka.log import Log, Row
from tests.simulation.processes import Process, Task
from tests.simulation.scheduler import FOREVER, Simulation
from tests.simulation.workload.fates import Fate, Fates
from tests.simulation.workload.script import Script


class Play(Simulation):
    """Whom something befalls is said by the fates of a script, at each call of each task."""

    def __init__(self, script: Script, given: Collection[Fate] | None) -> None:
        super().__init__(f"{script.seed} {script.schedule}")
        self.mine = Fates(script.seed, script.rates, script.aims, given)
        self.kinds: dict[str, str] = {}
        """Of processes, by name."""
        self._arriving: set[Task] = set()
        """Whose lost request arrives one day."""
        self._dying: set[Task] = set()
        """Who dies once its request has been applied."""

    def enter(self, what: str, *about: Any) -> Struck | None:
        task = self.current
        if task is None:
            return None
        self.calls += 1
        self.hand_over()
        if task in self._dying:
            # A call that says nothing when it is over.
            self.die()
        self._arriving.discard(task)
        name = task.process.name
        fate = self.mine.of(name, self.kinds.get(name, ""), what)
        if fate is None:
            return None
        self.note("FATE", *fate[1:], what, *about)
        match fate.kind:
            case "crash":
                self.die()
            case "crash after":
                self._dying.add(task)
            case "freeze":
                self.stand_still(fate.seconds)
            case "late":
                self._arriving.add(task)
                return "lost"
            case "lost":
                return "lost"
            case "passing":
                return "passing"
            case _:
                return "reply lost"
        return None

    def leave(self, what: str, *about: Any) -> None:
        if self.current in self._dying:
            self.die()

    def befalls(self, fate: Struck, *about: Any) -> bool:
        task = self.current
        if fate == "late":
            return task in self._arriving
        if task is None:
            return False
        found = self.mine.of_batch(task.process.name)
        if found is not None:
            self.note("FATE", *found[1:], fate, *about)
        return found is not None


class WatchedLog(Log):
    """One that notes what is written in the order in which that happens, over all logs."""

    __slots__ = ()
    written: list[tuple[Log, int]]

    def append(self, rows: Iterable[Row], producer: int | None = None, epoch: int = 0) -> int | None:
        before = len(self.entries)
        code = super().append(rows, producer, epoch)
        self.written += [(self, at) for at in range(before, len(self.entries))]
        return code


class Scene:
    """The simulation and the cluster, as the workload uses them."""

    def __init__(self, script: Script, given: Collection[Fate] | None = None) -> None:
        self._script = script
        self.play = Play(script, given)
        self.cluster = Cluster(self.play)
        self.written: list[tuple[Log, int]] = []
        """Outputs of all runs, in order."""
        self.names: set[str] = set()

    # Tasks

    def spawn(self, name: str, kind: str, body: Callable[[], Any]) -> Task:
        assert name not in self.names, name
        self.names.add(name)
        self.play.kinds[name] = kind
        return self.play.spawn(Process(name, self._script.clock_of(name)), name, body)

    def wait(self, ready: Callable[[], bool], seconds: float = FOREVER) -> bool:
        return self.play.wait(ready, seconds)

    def sleep(self, seconds: float) -> None:
        self.play.sleep(seconds)

    def kill(self, task: Task) -> None:
        self.play.kill(task.process)

    def log(self, *what: Any) -> None:
        self.play.note(*what)

    @property
    def is_still(self) -> bool:
        """Whether no transaction is open or on its way to its end."""
        return self.cluster.transactions.are_over

    # Topics

    def create(self, topic: str, partitions: int) -> None:
        self.cluster.create(topic, partitions)

    def create_output(self, topic: str) -> None:
        made = self.cluster.create(topic)
        log = WatchedLog(topic, 0)
        log.written = self.written
        made.logs = [log]
