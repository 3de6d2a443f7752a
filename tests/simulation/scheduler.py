"""A deterministic scheduler: tasks hand over at each call to the model, and one seed decides what happens then."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import Any, Protocol

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from tests.simulation.fates import Fate, Fates, Fault
from tests.simulation.processes import Crash, Process, Task, way_to

# How often whoever runs goes on, and how often the cluster does something where it has something to do.
GOES_ON, CLUSTER_ACTS = 0.45, 0.4
# Of what stands still, how much is a process with all its threads.
FROZEN = 0.5
STEP_SECONDS = 0.004
FREEZES = (2.0, 20.0, 70.0, 200.0)
FOREVER = 1e9
BEGINNING = 1_000.0
MOST_SWITCHES = 200_000


class Background(Protocol):
    """Somebody beside the tasks who may do something at any moment."""

    due: float
    """When time alone makes a difference."""

    def is_busy(self) -> bool: ...
    def act(self) -> None: ...
    def note_time(self) -> None: ...


class Simulation:
    """Runs tasks in virtual time. The same seed, fates and bodies give the same trace, byte for byte.

    :param spared: numbers of faults (as in `faults`) that would strike, and do not: a trace is made shorter with it
    """

    def __init__(self, seed: int | str, fates: Fates | None = None, spared: Collection[int] = ()) -> None:
        self.chance = random.Random(f"schedule {seed}")
        """Who goes next, and all else that the model leaves open."""
        self._fate = random.Random(f"fates {seed}")
        self.fates = fates or Fates()
        self.faults: list[Fault] = []
        """Those that have struck, or were spared."""
        self._spared = frozenset(spared)
        self.now, self.calls, self.switches = BEGINNING, 0, 0
        self.tasks: list[Task] = []
        self.trace: list[tuple[Any, ...]] = []
        self.background: list[Background] = []
        self.current: Task | None = None
        self._hub = getcurrent()
        self._failure: BaseException | None = None
        """What has ended all turns."""
        self._is_abandoned = False

    # What anybody may do

    def note(self, *what: Any) -> None:
        """Put something into the trace. Give it values only: it is printed when all is over."""
        self.trace.append((round(self.now, 2), self.current.name if self.current else "-", *what))

    def spawn(self, process: Process, name: str, body: Callable[[], Any]) -> Task:
        """Make a task that begins some time from now."""
        task = Task(process, name, body, self)
        self.tasks.append(task)
        return task

    def start(self, body: Callable[[], Any]) -> Task:
        """Begin a task of the same process now, which is run until it first hands over: most come to their end before
        that, and cost little more than a call."""
        caller = self.check()
        if caller is None:
            raise RuntimeError("a thread is started outside of all tasks: spawn one")
        task = Task(caller.process, f"{caller.name}/call", body, self)
        task.back, self.current = getcurrent(), task
        way_to(task).switch()
        self.current = caller
        if not task.done:
            self.tasks.append(task)
        if caller.process.dead:
            raise Crash
        return task

    def kill(self, process: Process) -> None:
        """End a process. What its clients have sent may arrive yet."""
        if not process.dead:
            for client in process.clients:
                client.died()
            process.dead = True

    def freeze(self, process: Process, seconds: float) -> None:
        """Have all tasks of a process stand still, as SIGSTOP and SIGCONT do. What they wait for goes on."""
        process.frozen_until = max(process.frozen_until, self.now + seconds)

    # What tasks do

    def check(self) -> Task | None:
        """The task that runs now, which ends here if its process is dead."""
        task = self.current
        if task is not None and task.process.dead:
            raise Crash
        return task

    def hand_over(self) -> None:
        """Let others go on, or not."""
        task = self.current
        if task is None:
            return
        if task.process.dead:
            raise Crash
        chance = self.chance.random
        self.now += chance() * STEP_SECONDS
        if chance() >= GOES_ON:
            task.ready, task.wake = None, 0.0
            self._leave(task)

    def sleep(self, seconds: float) -> None:
        self.wait(None, seconds)

    def wait(self, ready: Callable[[], bool] | None, seconds: float = FOREVER) -> bool:
        """Wait until it is so, or time is up; says which."""
        task = self.check()
        if task is None:
            return self._wait_alone(ready, seconds)
        task.ready, task.wake = ready, self.now + seconds
        self._leave(task)
        return ready is not None and ready()

    def enter(self, what: str, *about: Any) -> Fate | None:
        """Before a request: hand over. Says what befalls it; a crash or a freeze comes here."""
        if self.current is None:
            return None
        self.calls += 1
        self.hand_over()
        struck = self.fates.strike(self._fate.random())
        if struck is None or not self._strikes(struck, what, about):
            return None
        if struck == "crash":
            self.die()
        if struck == "freeze":
            self.stand_still(self._fate.choice(FREEZES))
            return None
        return struck

    def leave(self, what: str, *about: Any) -> None:
        """After a request was applied: the process may die before it sees the answer."""
        struck = self.current is not None and self._fate.random() < self.fates.crash
        if struck and self._strikes("crash", "after", (what, *about)):
            self.die()

    def stand_still(self, seconds: float) -> None:
        """Either the call is slow, or the whole process is frozen in it."""
        task = self.check()
        if task is not None and self.chance.random() < FROZEN:
            self.freeze(task.process, seconds)
        self.sleep(seconds)

    def befalls(self, fate: Fate, *about: Any) -> bool:
        """Whether something happens here that has a chance of its own."""
        chance = self.fates.chance_of(fate)
        return chance > 0 and self._fate.random() < chance and self._strikes(fate, "", about)

    def die(self) -> None:
        task = self.current
        if task is not None:
            self.kill(task.process)
            raise Crash

    def _strikes(self, fate: Fate, what: str, about: tuple[Any, ...]) -> bool:
        number = len(self.faults)
        self.faults.append(Fault(number, fate, self.current.name if self.current else "-", f"{what} {about}"))
        if number in self._spared:
            return False
        self.note("FAULT", number, fate, what, *about)
        return True

    def _leave(self, task: Task) -> None:
        if task.back is not None:
            back, task.back = task.back, None
            back.switch()
        elif (chosen := self._choose()) is not task:
            self._way_to(chosen).switch()
        if task.process.dead:
            raise Crash

    def _wait_alone(self, ready: Callable[[], bool] | None, seconds: float) -> bool:
        """As `wait`, outside of all tasks, as tests and a workload do while they set something up."""
        while ready is not None and not ready() and any(each.is_busy() for each in self.background):
            for each in self.background:
                each.act()
        if ready is not None and ready():
            return True
        self._go_to(self.now + seconds)
        return ready is not None and ready()

    # Whose turn it is

    def run(self) -> None:
        """Until all tasks have ended."""
        try:
            self._take_turns()
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """End everything, whatever it says: nothing is to go on when it is collected."""
        for task in self.tasks:
            self.kill(task.process)
        self._is_abandoned = True
        self._take_turns()

    def after(self, task: Task) -> greenlet:
        """Who goes on once a task is done."""
        if task.back is not None:
            return task.back
        self.tasks.remove(task)
        return self._way_to(self._choose())

    def _take_turns(self) -> None:
        """Tasks hand over to each other; here is gone on when there is none, or no choice between them."""
        self._hub = getcurrent()
        if self.tasks and (chosen := self._choose()) is not None:
            way_to(chosen).switch()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _way_to(self, task: Task | None) -> greenlet:
        return self._hub if task is None else way_to(task)

    def _choose(self) -> Task | None:
        """Whose turn it is now; nobody's where all is over."""
        self.current = None
        task = None
        try:
            while task is None and self.tasks:
                task = self.tasks[0] if self._is_abandoned else self._step()
        except BaseException as error:  # noqa: BLE001  # whoever runs the simulation gets it
            self._failure = error
        if task is not None:
            task.ready, task.wake = None, 0.0
            self.current = task
        return task

    def _step(self) -> Task | None:
        """Who may go on, unless the cluster does something, or time passes."""
        self.switches += 1
        if self.switches > MOST_SWITCHES:
            raise RuntimeError("no end: " + ", ".join(task.name for task in self.tasks))
        busy, chance = None, self.chance.random
        for each in self.background:
            if each.is_busy():
                busy = each
                break
        if busy is not None and chance() < CLUSTER_ACTS:
            busy.act()
            return None
        task = self._runnable(chance())
        if task is not None:
            self._go_to(self.now + chance() * STEP_SECONDS)
        elif busy is not None:
            busy.act()
        else:
            frozen = [task.process.frozen_until for task in self.tasks if task.process.frozen_until > self.now]
            wake = min([task.wake for task in self.tasks if task.process.frozen_until <= self.now] + frozen)
            if wake >= FOREVER:
                raise RuntimeError("all wait for each other: " + ", ".join(task.name for task in self.tasks))
            self._go_to(wake)
        return task

    def _runnable(self, drawn: float) -> Task | None:
        """The first that may go on, from one that chance names: the others need not be looked at."""
        tasks, now = self.tasks, self.now
        first = int(drawn * len(tasks))
        for at in range(first - len(tasks), first):
            task = tasks[at]
            process = task.process
            if process.dead:
                return task
            if process.frozen_until <= now:
                ready = task.ready
                if task.wake <= now or (ready is not None and ready()):
                    return task
        return None

    def _go_to(self, now: float) -> None:
        self.now = now
        for each in self.background:
            if now > each.due:
                each.note_time()
