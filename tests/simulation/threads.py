"""What stands in for threads: tasks of the same process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import TimeoutError as TooLateError
from functools import partial
from types import SimpleNamespace
from typing import Any

from tests.simulation.processes import Task
from tests.simulation.scheduler import FOREVER
from tests.simulation.stage import STAGE


class Event:
    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def wait(self, timeout: float | None = None) -> bool:
        return self._is_set or STAGE.simulation.wait(self.is_set, FOREVER if timeout is None else timeout)


class Thread:
    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: dict[str, Any] | None = None,
        daemon: bool | None = None,
    ) -> None:
        self._target, self._args, self._task = target, tuple(args), Done
        self.daemon = daemon

    def start(self) -> None:
        if self._target is None:
            return
        if STAGE.simulation.current is None:
            self._target(*self._args)
        else:
            body = partial(self._target, *self._args) if self._args else self._target
            self._task = STAGE.simulation.start(body)

    def join(self, timeout: float | None = None) -> None:
        task = self._task
        if not task.done:
            STAGE.simulation.wait(lambda: task.done, FOREVER if timeout is None else timeout)

    def is_alive(self) -> bool:
        return not self._task.done


class _Done:
    done = True


Done: Any = _Done()


class Lock:
    """Nobody hands over while holding one."""

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *_: object) -> None:
        return


class Future:
    """One that is waited for in virtual time."""

    def __init__(self) -> None:
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        return self._done

    def set_result(self, result: Any) -> None:
        self._done, self._result = True, result

    def set_exception(self, error: BaseException) -> None:
        self._done, self._error = True, error

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._wait(timeout)
        return self._error

    def result(self, timeout: float | None = None) -> Any:
        self._wait(timeout)
        if self._error is not None:
            raise self._error
        return self._result

    def _wait(self, timeout: float | None) -> None:
        if not self._done and not STAGE.simulation.wait(self.done, FOREVER if timeout is None else timeout):
            raise TooLateError


class Executor:
    """A pool whose threads take one call after another, whoever comes first."""

    def __init__(self, max_workers: int | None = None, thread_name_prefix: str = "") -> None:
        self._most = max_workers or 1
        self._waiting: list[tuple[Callable[[], Any], Future]] = []
        self._tasks: list[Task] = []

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def submit(self, call: Callable[..., Any], *args: Any) -> Future:
        future = Future()
        self._waiting.append((lambda: call(*args), future))
        simulation = STAGE.simulation
        if simulation.current is None:
            self._work()
            return future
        self._tasks = [task for task in self._tasks if not task.done]
        if len(self._tasks) < self._most:
            self._tasks.append(simulation.start(self._work))
        return future

    def map(self, call: Callable[..., Any], *each: Iterable[Any]) -> Iterator[Any]:
        futures = [self.submit(call, *args) for args in zip(*each, strict=False)]
        return (future.result() for future in futures)

    def shutdown(self, wait: bool = True) -> None:
        if wait and self._tasks and STAGE.simulation.current is not None:
            STAGE.simulation.wait(lambda: all(task.done for task in self._tasks))

    def _work(self) -> None:
        while self._waiting:
            call, future = self._waiting.pop(0)
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001  # whoever asked gets it
                future.set_exception(error)


def wait_for_answers(
    futures: Iterable[Any], timeout: float | None = None, return_when: str = ""
) -> tuple[set[Any], set[Any]]:
    """As `concurrent.futures.wait`, over answers that are there."""
    return set(futures), set()


THREADING = SimpleNamespace(Event=Event, Thread=Thread, Lock=Lock)
