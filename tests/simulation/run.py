"""Runs many schedules, or one with its trace: `make simulate SEEDS=100000`, `make simulate SEED=7`."""

from __future__ import annotations

from typing import Any

from tests.simulation.setting import ROOT, settle_in

if __name__ == "__main__":
    settle_in()

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from itertools import accumulate, starmap
from multiprocessing import get_context
from pathlib import Path

import tests.simulation.injection  # noqa: F401  # before anything of the product
from tests.simulation.figures import Figures
from tests.simulation.workload.episode import Result, play
from tests.simulation.workload.script import draw

RESULTS = ROOT / "tests" / "results" / "simulation.json"
ALL_COLLECTED_EVERY = 1_000
MOST_SHOWN = 10
PART = 5_000


def run(seeds: Iterable[int], seconds: float, until_anomaly: bool = False, digests: bool = False) -> Figures:
    """Run schedules until there are no more seeds, or time is up, or one has found something."""
    figures, begun = Figures(), time.process_time()
    gc.disable()
    # What is there by now stays: it need not be looked through each time.
    gc.freeze()
    # Coroutines whose process was killed are collected without an event loop.
    warnings.simplefilter("ignore", RuntimeWarning)
    sys.unraisablehook = lambda _: None
    for seed in seeds:
        if time.process_time() - begun > seconds or (until_anomaly and figures.seeds):
            break
        result = play(draw(seed))
        add(result, figures)
        if digests:
            say(f"{seed} {result.digest}")
        if result.anomalies and len(figures.seeds) <= MOST_SHOWN:
            said = "; ".join(f"{each.promise.name} {each}" for each in result.anomalies[:3])
            say(f"SEED={seed} {result.script.mood}: {said}")
        # What a schedule leaves behind is found among what is youngest; to look through all that is there takes longer.
        gc.collect(2 if figures.schedules % ALL_COLLECTED_EVERY == 0 else 0)
    figures.seconds = time.process_time() - begun
    return figures


def add(result: Result, figures: Figures) -> None:
    figures.schedules += 1
    figures.calls += result.calls
    figures.fates.update(each.kind for each in result.fates)
    figures.steps += result.seen
    figures.anomalies.update(result.broken)
    if result.anomalies:
        figures.seeds.append(result.script.seed)


def run_in_processes(processes: int, seeds: range, seconds: float, *how: bool) -> Iterator[Figures]:
    """Run them in parts, and say after each part what all have come to: a run that is ended early has its figures."""
    parts: list[Any] = [(seeds[at : at + PART], seconds, *how) for at in range(0, len(seeds), PART)]
    if processes == 1:
        yield from accumulate(starmap(run, parts), initial=Figures())
        return
    with get_context("spawn").Pool(processes) as pool:
        yield from accumulate(pool.imap_unordered(run_part, parts), initial=Figures())


def run_part(part: tuple[range, float, bool, bool]) -> Figures:
    return run(*part)


def replay(seed: int) -> int:
    """Say everything about one schedule."""
    result = play(draw(seed))
    say(repr(result.script))
    for line in result.trace:
        say(" ".join(map(str, line)))
    say(f"{result.calls} calls, digest {result.digest}")
    for anomaly in result.anomalies:
        say(f"{anomaly.promise.name} {anomaly.promise.title}: {anomaly}")
    return 1 if result.anomalies else 0


def keep(figures: Figures, first: int, file: Path) -> None:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"commit": commit, "first_seed": first, **figures.to_json()}, indent=2) + "\n")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this one, and print its trace")
    parser.add_argument("--first", type=int, help="the first seed; by default any")
    parser.add_argument("--seeds", type=int, default=10_000, help="how many")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no longer than this, of the processor")
    parser.add_argument("--until-anomaly", action="store_true", help="end with the first one")
    parser.add_argument("--digests", action="store_true", help="print one of each schedule's trace")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--results", type=Path, help="where the figures are kept")
    chosen = parser.parse_args(arguments)
    if chosen.seed is not None:
        return replay(chosen.seed)
    os.nice(10)
    first = random.SystemRandom().randrange(10**9) if chosen.first is None else chosen.first
    say(f"seeds from {first}")
    seeds = range(first, first + chosen.seeds)
    for figures in run_in_processes(chosen.processes, seeds, chosen.seconds, chosen.until_anomaly, chosen.digests):
        if chosen.results is not None and figures.schedules:
            keep(figures, first, chosen.results)
        if figures.seconds > chosen.seconds * chosen.processes or (chosen.until_anomaly and figures.seeds):
            break
    say(figures.told())
    return 1 if figures.seeds else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
