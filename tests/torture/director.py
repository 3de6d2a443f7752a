"""The choice of the next run, redrive, backfill or reset, as long as the torture lasts; then all is read."""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.torture.cluster import Cluster
from tests.torture.history import History
from tests.torture.pipelines import PARTITIONS
from tests.torture.runs import Runs
from tests.torture.tools import Tools
from tests.torture.workload import Workload, draw_waves

AT_ONCE = 2
WAVE_SECONDS = (0.8, 1.8)
LARGEST_WAVE = 160
LEAST_DELETED = 50
PATIENCE = 3
MOST_LAST_RUNS = 6

STEPS: Mapping[str, int] = {
    "live": 7,
    "again": 2,
    "redrive": 3,
    "backfill": 4,
    "publish": 4,
    "reset": 4,
    "delete_records": 3,
    "retention": 2,
}


class Director:
    """A context manager: things are done inside the block."""

    def __init__(
        self, seed: int, all_runs: Sequence[Runs], workload: Workload, cluster: Cluster, history: History
    ) -> None:
        self._seed, self._all, self._workload = seed, all_runs, workload
        self._history, self._tools = history, Tools(cluster, history)
        self._over = threading.Event()
        self.done: Counter[str] = Counter()
        self.failures: list[str] = []

    def __enter__(self) -> Director:
        first = random.Random(f"torture first waves {self._seed}")
        for runs in self._all:
            self._workload.send(runs.victim, draw_waves(first, LARGEST_WAVE))
        hands = [self._guarded(self._produce, "waves")]
        hands += [self._guarded(self._direct, f"runs {number}") for number in range(AT_ONCE)]
        self._threads = [threading.Thread(target=each, daemon=True) for each in hands]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, do: Callable[[str], None], name: str) -> Callable[[], None]:
        def run() -> None:
            try:
                do(f"torture {name} {self._seed}")
            except Exception as failure:  # noqa: BLE001
                self.failures.append(f"{name}: {type(failure).__name__}: {failure}")

        return run

    def _produce(self, chance: str) -> None:
        rnd = random.Random(chance)
        while not self._over.wait(rnd.uniform(*WAVE_SECONDS)):
            self._workload.send(rnd.choice(self._all).victim, draw_waves(rnd, LARGEST_WAVE))

    def _direct(self, chance: str) -> None:
        """Take step after step. Each draws on its own, so that one that comes out otherwise changes no later one."""
        for number in itertools.count():
            if self._over.is_set():
                return
            rnd = random.Random(f"{chance} {number}")
            runs = self._choose(rnd)
            steps = {step: often for step, often in STEPS.items() if step in runs.victim.does | {"live", "again"}}
            step = rnd.choices(list(steps), list(steps.values()))[0]
            if getattr(self, f"_{step}")(runs, rnd):
                self.done[step] += 1

    def _choose(self, rnd: random.Random) -> Runs:
        """Choose mostly one that has waited long; sometimes one that is at work, for two runs at once."""
        busy = [each for each in self._all if each.at_work]
        if busy and rnd.random() < 0.25:
            return rnd.choice(busy)
        return rnd.choice(sorted(self._all, key=lambda each: each.last_begun)[:3])

    # The steps: each says if anything was done.

    def _live(self, runs: Runs, rnd: random.Random) -> bool:
        caps = {"max_records": rnd.randint(100, 900)} if rnd.random() < 0.3 else {}
        runs.live(runs.new("live", rnd, **caps))
        return True

    def _again(self, runs: Runs, rnd: random.Random) -> bool:
        idle = [each for each in runs.past[-5:] if not each.busy.locked()]
        if idle:
            runs.again(rnd.choice(idle), forget=rnd.random() < 0.5)
        return bool(idle)

    def _redrive(self, runs: Runs, rnd: random.Random) -> bool:
        run = runs.new("redrive", rnd)
        run.params = {"target": "output"}
        runs.redrive(run)
        return True

    def _backfill(self, runs: Runs, rnd: random.Random) -> bool:
        return self._window(runs, rnd, "backfill")

    def _publish(self, runs: Runs, rnd: random.Random) -> bool:
        return self._window(runs, rnd, "published")

    def _window(self, runs: Runs, rnd: random.Random, kind: Any) -> bool:
        bounds = self._tools.bounds(runs.victim)
        if not any(high > low for low, high in bounds.values()):
            return False
        # One that is published has to lie around the group, which it takes to its end.
        held = self._tools.committed(runs.victim) if kind == "published" else {}
        start, end = {}, {}
        for partition, (low, high) in bounds.items():
            least = min(max(held.get(partition, low), low), high)
            first = start[str(partition)] = rnd.randint(max(low, least - 200), least if held else high)
            end[str(partition)] = rnd.randint(max(first, least), min(high, max(first, least) + 600))
        runs.live(runs.new(kind, rnd, start=start, end=end, publish=kind == "published"))
        return True

    def _reset(self, runs: Runs, rnd: random.Random) -> bool:
        with runs.quiet() as quiet:
            if not quiet or not runs.may_reset:
                return False
            held = self._tools.committed(runs.victim)
            if not held:
                return False
            partition = rnd.choice(sorted(held))
            offset = rnd.choice((held[partition], rnd.randint(max(0, held[partition] - 400), held[partition])))
            self._tools.put(runs.victim, {partition: offset})
            runs.may_reset = False
        return True

    def _delete_records(self, runs: Runs, rnd: random.Random) -> bool:
        partition = rnd.randrange(PARTITIONS)
        low, high = self._tools.bounds(runs.victim).get(partition, (0, 0))
        if high - low < LEAST_DELETED:
            return False
        return self._tools.delete_records(runs.victim, partition, rnd.randint((low + high) // 2, high))

    def _retention(self, runs: Runs, rnd: random.Random) -> bool:
        return self._tools.let_retention_pass(runs.victim)

    def drain(self) -> None:
        """Have everything read that is left, undisturbed; the last plans have nothing to do."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(self._drain, self._all))

    def _drain(self, runs: Runs) -> None:
        for _ in range(MOST_LAST_RUNS):
            run = runs.new("live", None)
            runs.live(run, PATIENCE)
            if run.green and run.is_empty:
                break
        if "redrive" in runs.victim.does:
            run = runs.new("redrive", None)
            run.params = {"target": "output"}
            runs.redrive(run, PATIENCE)
        if "delete_records" in runs.victim.does:
            self._tools.note_log_starts(runs.victim)
        held = self._tools.committed(runs.victim)
        self._history.drained(pipeline=runs.victim.name, partitions=held)
