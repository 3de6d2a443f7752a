"""A torture of every kind of pipeline on three brokers, and a look of the checker at what has become of it.

`python -m tests.torture.run --minutes 10 --seed 7`: the seed replays what is done and when, though not how fast it is.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from pathlib import Path

from confluent_kafka import Producer

from tests.torture.checker.dump import HISTORY
from tests.torture.checker.reading import read_everything
from tests.torture.checker.verdict import check
from tests.torture.cluster import QUIET, Cluster
from tests.torture.director import Director
from tests.torture.enough import shortfalls
from tests.torture.history import History
from tests.torture.nemesis import Nemesis
from tests.torture.nursery import Nursery
from tests.torture.observer import Watched
from tests.torture.pipelines import PARTITIONS, Victim, victims
from tests.torture.runs import Runs
from tests.torture.schedule import draw_faults
from tests.torture.workload import Workload

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    asked = options(arguments)
    # Whoever ends it ends all that it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    if asked.keep is None:
        folder = ROOT / ".torture" / str(asked.seed)
        shutil.rmtree(folder, ignore_errors=True)
    else:
        folder = Path(asked.keep)
    folder.mkdir(parents=True, exist_ok=True)
    say(f"SEED={asked.seed} MINUTES={asked.minutes:g}, in {folder}")
    try:
        failures = torture(folder, asked.seed, asked.minutes, asked.only)
        verdict = check(folder)
    except BaseException:
        say(f"It came to no end; all that is known is in {folder}")
        raise
    for line in verdict.lines():
        say(line)
    missing = failures if asked.only else [*failures, *shortfalls(verdict.figures, asked.minutes)]
    for each in missing:
        say(f"NOT ENOUGH: {each}")
    (folder / "verdict.json").write_text(verdict.as_json())
    if asked.results:
        figures = {**verdict.figures, "anomalies": len(verdict.anomalies)}
        Path(asked.results, f"torture-{asked.seed}.json").write_text(json.dumps(figures, indent=2) + "\n")
    if verdict.anomalies:
        say(f"make torture MINUTES={asked.minutes:g} SEED={asked.seed} replays the schedule of faults")
    say(f"History, topics and logs are in {folder}")
    return 1 if verdict.anomalies or missing else 0


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make torture")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", default=None, help="a folder for history, topics and logs; by default .torture/SEED")
    parser.add_argument("--only", default="", help="names of pipelines, with commas")
    parser.add_argument("--results", default=None, help="a folder for the figures")
    asked = parser.parse_args(arguments)
    if asked.seed is None:
        asked.seed = random.SystemRandom().randrange(10**9)
    return asked


def torture(folder: Path, seed: int, minutes: float, only: str) -> list[str]:
    """Do all of it, and read everything before the cluster goes away; return which hands have failed, and how."""
    history = History(folder / HISTORY)
    history.begun(seed=seed, minutes=minutes, commit=commit(), started=datetime.now(timezone.utc).isoformat())
    chosen = [each for each in victims() if not only or each.name in only.split(",")]
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(folder / "cluster"))
        make_topics(cluster, chosen)
        for each in chosen:
            each.declare(history)
        nursery = stack.enter_context(Nursery(folder / "tasks", connections(cluster)))
        stack.enter_context(observing(folder, cluster, chosen))
        workload = Workload(cluster.direct, history)
        all_runs = [Runs(each, folder / "dags", nursery, history) for each in chosen]
        director = Director(seed, all_runs, workload, cluster, history)
        nemesis = Nemesis(draw_faults(seed, minutes * 60), cluster, nursery, history)
        with nemesis, director:
            time.sleep(minutes * 60)
            nemesis.stop()
        say(f"{sum(nemesis.done.values())} faults: {dict(nemesis.done)}; nobody was there for {dict(nemesis.idle)}")
        say(f"{dict(director.done)}")
        cluster.await_all()
        end_transactions(cluster, chosen)
        director.drain()
        history.ended()
        read_everything(cluster.direct, folder)
        return nemesis.failures + director.failures


def make_topics(cluster: Cluster, chosen: Sequence[Victim]) -> None:
    partitions: dict[str, int] = {}
    config: dict[str, dict[str, str]] = {}
    for each in chosen:
        partitions |= each.topics
        config |= each.topic_config
    cluster.create_topics(partitions, config)


def connections(cluster: Cluster) -> dict[str, str]:
    """Declare Airflow's connections: what is under test comes over the proxies."""
    extra = {"bootstrap.servers": cluster.proxied}
    return {"AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps({"conn_type": "kafka", "extra": extra})}


def end_transactions(cluster: Cluster, chosen: Sequence[Victim]) -> None:
    """End those of the workload of which nobody knows how they ended."""
    for each in chosen:
        producer = Producer(
            {"bootstrap.servers": cluster.direct, "transactional.id": f"torture/{each.source}", **QUIET}
        )
        producer.init_transactions(60)


@contextmanager
def observing(folder: Path, cluster: Cluster, chosen: Sequence[Victim]) -> Iterator[None]:
    watched = [
        Watched(
            each.pipeline.group,
            each.source,
            [each.pipeline.destination.topic, each.dead],
            None if each.pipeline.partitions.relaxed else each.progress_groups[0],
            PARTITIONS,
        )
        for each in chosen
    ]
    spec = folder / "observer.json"
    spec.write_text(
        json.dumps(
            {
                "history": str(folder / HISTORY),
                "bootstrap": cluster.direct,
                "watched": [dataclasses.asdict(each) for each in watched],
            }
        )
    )
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "tests.torture.observer", str(spec)]
    with (
        (folder / "observer.log").open("ab") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=surroundings) as process,
    ):
        try:
            yield
        finally:
            process.kill()


def commit() -> str:
    told = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return told.stdout.strip()


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
