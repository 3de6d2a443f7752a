"""Processes, which die, and their tasks, which are greenlets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from greenlet import greenlet  # type: ignore[import-untyped]


class Crash(BaseException):  # it is no error: nothing that catches errors may catch it
    """The end of a process, raised out of whatever it calls from then on."""


class Mortal(Protocol):
    """A client, which goes down with its process."""

    def died(self) -> None: ...


@dataclass(slots=True, eq=False)
class Process:
    """What dies together: tasks, and the clients they have opened."""

    name: str
    dead: bool = False
    frozen_until: float = 0.0
    clients: list[Mortal] = field(default_factory=list)


class Task:
    """A thread of a process. `result` and `error` say how it ended; of one that died, neither does."""

    __slots__ = ("back", "done", "error", "greenlet", "name", "process", "ready", "result", "wake")

    def __init__(self, process: Process, name: str, body: Callable[[], Any], parent: greenlet) -> None:
        self.process, self.name = process, name
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.wake = 0.0
        self.ready: Callable[[], bool] | None = None
        self.back: greenlet | None = None

        def run() -> None:
            try:
                self.result = body()
            except Crash:
                pass
            except BaseException as error:  # noqa: BLE001  # whoever waits for the task looks at it
                self.error = error
            self.done = True

        self.greenlet = greenlet(run, parent)

    @property
    def succeeded(self) -> bool:
        """Whether it came to its end, and its process lived to see that."""
        return self.done and self.error is None and not self.process.dead
