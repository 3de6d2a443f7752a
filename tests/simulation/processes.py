"""Processes, which die, and their tasks, which are greenlets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from greenlet import GreenletExit, getcurrent, greenlet  # type: ignore[import-untyped]


class Crash(BaseException):  # it is no error: nothing that catches errors may catch it
    """The end of a process, raised out of whatever it calls from then on."""


class Mortal(Protocol):
    """A client, which goes down with its process."""

    def died(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a host, which is wrong by some seconds, and by others once somebody has set it."""

    ahead: float = 0.0
    set_at: float = math.inf
    then_ahead: float = 0.0

    def reads(self, now: float) -> float:
        return now + (self.ahead if now < self.set_at else self.then_ahead)


RIGHT = Clock()


@dataclass(slots=True, eq=False)
class Process:
    """What dies together: tasks, and the clients they have opened."""

    name: str
    clock: Clock = RIGHT
    dead: bool = False
    frozen_until: float = 0.0
    clients: list[Mortal] = field(default_factory=list)


class Task:
    """A thread of a process. `result` and `error` say how it ended; of one that died, neither does."""

    __slots__ = (
        *("back", "body", "done", "error", "greenlet", "name"),
        *("process", "ready", "result", "simulation", "wake"),
    )

    def __init__(self, process: Process, name: str, body: Callable[[], Any], simulation: Turns) -> None:
        self.process, self.name, self.body, self.simulation = process, name, body, simulation
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.wake = 0.0
        self.ready: Callable[[], bool] | None = None
        self.greenlet: greenlet | None = None
        """None before it has begun."""
        self.back: greenlet | None = None
        """Whoever has started it, as long as it has not handed over."""

    def has_ended(self) -> bool:
        """Tell whether the task is done: a condition to wait for."""
        return self.done

    def run(self) -> None:
        try:
            self.result = self.body()
        except Crash:
            pass
        except GreenletExit:
            # It is collected, and goes on nowhere.
            raise
        except BaseException as error:  # noqa: BLE001  # whoever waits for the task looks at it
            self.error = error
        self.done = True

    @property
    def succeeded(self) -> bool:
        """Whether it came to its end, and its process lived to see that."""
        return self.done and self.error is None and not self.process.dead


class Turns(Protocol):
    """Says whose turn it is."""

    def after(self, task: Task) -> greenlet: ...


_IDLE: list[greenlet] = []
_BEGINNING: list[Task] = []


def way_to(task: Task) -> greenlet:
    """Say which greenlet to switch to, right now. One that has nothing to do begins a task: to make a new one takes as
    long as many switches."""
    if task.greenlet is None:
        task.greenlet = _IDLE.pop() if _IDLE else greenlet(_carry, _MAIN)
        _BEGINNING.append(task)
    return task.greenlet


def _carry() -> None:
    """Run tasks, one after another, without holding on to any that is over."""
    me = getcurrent()
    while True:
        task = _BEGINNING.pop()
        task.run()
        _IDLE.append(me)
        next_one = task.simulation.after(task)
        del task
        next_one.switch()


_MAIN = getcurrent()
