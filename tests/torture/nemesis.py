"""The faults of a schedule, done each in a thread of its own, and written down when they begin and end."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable

import psutil

from tests.kit.jobs import driver_jvm, partition_workers, python_workers
from tests.torture.cluster import Cluster
from tests.torture.history import History
from tests.torture.nursery import Nursery, signal_to
from tests.torture.schedule import BROKER_AWAY, Fault

FIND_SECONDS = 4.0
"""For somebody to be there whom a fault can happen to."""
LOOK_SECONDS = 0.1
MOVED_SECONDS = 2.0
"""In which clients find out who leads by now."""


class Nemesis:
    """A context manager: faults happen inside the block, and all of them are over after it."""

    def __init__(self, faults: Iterable[Fault], cluster: Cluster, nursery: Nursery, history: History) -> None:
        self._faults, self._cluster, self._nursery, self._history = list(faults), cluster, nursery, history
        self._over = threading.Event()
        self._broker = threading.Lock()
        self._trouble = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.done: Counter[str] = Counter()
        self.idle: Counter[str] = Counter()
        """Those that found nobody."""
        self.failures: list[str] = []

    def __enter__(self) -> Nemesis:
        self._main = threading.Thread(target=self._run, daemon=True)
        self._main.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End what is going on; whoever is frozen goes on."""
        self._over.set()
        self._main.join()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        for number, fault in enumerate(self._faults, 1):
            if self._over.wait(max(0.0, began + fault.at - time.monotonic())):
                return
            thread = threading.Thread(target=self._do, args=(number, fault), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _do(self, number: int, fault: Fault) -> None:
        try:
            if fault.kind in BROKER_AWAY:
                with self._broker:
                    effect = self._broker_away(number, fault)
            elif fault.kind == "trouble":
                with self._trouble:
                    effect = self._make_trouble(number, fault)
            elif fault.kind.startswith("move"):
                effect = self._move(number, fault)
            else:
                effect = self._to_process(number, fault)
        except Exception as failure:  # noqa: BLE001
            self.failures.append(f"fault {number}, {fault}: {type(failure).__name__}: {failure}")
            return
        (self.done if effect else self.idle)[name_of(fault)] += 1

    def _noted(self, number: int, fault: Fault, target: str, detail: str, do: Callable[[], str | None]) -> str | None:
        self._history.fault_begun(
            fault=number, kind=name_of(fault), target=target, outage=fault.is_outage, detail=detail
        )
        effect = None
        try:
            effect = do()
        finally:
            self._history.fault_ended(fault=number, effect=effect)
        return effect

    # Brokers, and the way to them.

    def _broker_away(self, number: int, fault: Fault) -> str | None:
        if self._over.is_set():
            return None
        brokers = self._cluster.brokers
        broker = brokers[1 + int(fault.whom * len(brokers))]

        def do() -> str:
            # As no other is away, this one alone cannot stop the others.
            self._cluster.await_all()
            if fault.kind == "kill broker":
                broker.kill()
                self._over.wait(fault.seconds)
                broker.start()
            else:
                broker.freeze()
                self._over.wait(fault.seconds)
                broker.thaw()
            self._cluster.await_all()
            return f"broker {broker.number} was away for {fault.seconds} s"

        return self._noted(number, fault, f"broker {broker.number}", f"{fault.seconds} s", do)

    def _make_trouble(self, number: int, fault: Fault) -> str | None:
        trouble = fault.trouble
        assert trouble
        proxies = list(self._cluster.proxies.values())
        concerned = proxies if fault.everywhere else [proxies[int(fault.whom * len(proxies))]]
        before = sum(each.hits for each in concerned)

        def do() -> str | None:
            for each in concerned:
                each.trouble = trouble
            self._over.wait(fault.seconds)
            for each in concerned:
                each.trouble = None
            # What comes late has to have come.
            self._over.wait(trouble.seconds if trouble.effect == "late_request" else 0.0)
            hits = sum(each.hits for each in concerned) - before
            return f"{hits} times" if hits else None

        detail = f"{trouble.effect} of {sorted(trouble.kinds) or 'all'} for {fault.seconds} s, by {trouble.seconds} s"
        return self._noted(number, fault, "all brokers" if fault.everywhere else "one broker", detail, do)

    def _move(self, number: int, fault: Fault) -> str | None:
        prefixes: tuple[str, ...] = ("__consumer_offsets", "__transaction_state")
        if fault.kind == "move leaders":
            names = {name for name, *_ in self._cluster.leaders([""]) if not name.startswith("__")}
            prefixes = tuple(sorted(names))

        def do() -> str | None:
            moved = self._cluster.move_leaders(prefixes)
            self._over.wait(MOVED_SECONDS)
            return f"{moved} partitions" if moved else None

        return self._noted(number, fault, "leaders", "", do)

    # Who works.

    def _to_process(self, number: int, fault: Fault) -> str | None:
        verb, role = fault.kind.split(" ")
        until = time.monotonic() + FIND_SECONDS
        while not (found := self._find(role)):
            if self._over.is_set():
                return None
            if time.monotonic() > until:
                role = "task"
            time.sleep(LOOK_SECONDS)
        pid = sorted(found)[int(fault.whom * len(found))]

        def do() -> str | None:
            match verb:
                case "kill":
                    return f"pid {pid} died" if signal_to(pid, signal.SIGKILL) else None
                case "stop":
                    working = self._nursery.working.get(pid)
                    if working is None:
                        return None
                    self._nursery.stop(working)
                    return f"pid {pid} was stopped"
            if not signal_to(pid, signal.SIGSTOP):
                return None
            self._over.wait(fault.seconds)
            return f"pid {pid} stood still" if signal_to(pid, signal.SIGCONT) else f"pid {pid} died still"

        return self._noted(number, fault, f"pid {pid}", f"{fault.seconds} s", do)

    def _find(self, role: str) -> list[int]:
        tasks = list(self._nursery.working)
        if role == "task":
            return tasks
        found: list[psutil.Process] = []
        for task in tasks:
            match role:
                case "driver":
                    try:
                        found.append(driver_jvm(task))
                    except ValueError:
                        continue
                case "worker":
                    found += python_workers(task)
                case "child":
                    found += partition_workers(task)
        return [each.pid for each in found]


def name_of(fault: Fault) -> str:
    return f"{fault.trouble.effect}" if fault.trouble else fault.kind
