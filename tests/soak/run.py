"""`make soak`: production without a pause, and what it holds, leaves and loses meanwhile."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

from airflow_provider_kpipe.sandbox import SMALL_JVM, Jvm, SandboxBroker, create_topics
from demo.airflow_server import SandboxAirflow
from demo.airflow_settings import LOCAL_SPARK, kafka_connection
from tests.kit.postgresql import postgresql
from tests.soak.accounts import Accounts
from tests.soak.leftovers import Leftovers
from tests.soak.peaks import by_run, judge
from tests.soak.processes import adopt_orphans
from tests.soak.producer import SteadyProducer
from tests.soak.production import Production
from tests.soak.read_back import Reader
from tests.soak.records import PARTITIONS
from tests.soak.report import Outcome, figures, table, verdict
from tests.soak.sampler import Sampler, count_files, read_samples

SOURCE, OUT, DEAD, PARKED = "soak", "soak.out", "soak.dead", "soak.parked"
GROUP = "soak"
DAGS = Path(__file__).with_name("dags")
ROOT = Path(__file__).parents[2]
SAMPLES = "samples.jsonl"
# A heap that is filled for the first time looks as if it leaked: here all of it is there from the beginning.
WHOLE_HEAP = Jvm(SMALL_JVM.heap, (*SMALL_JVM.flags, f"-Xms{SMALL_JVM.heap}", "-XX:+AlwaysPreTouch"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, and say all that is not as it has to be; 1 if there is something."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--rate", type=float, default=150.0, help="records that are produced in a second")
    parser.add_argument("--samples", type=Path, required=True, help="the folder that keeps samples and logs")
    parser.add_argument("--figures", type=Path, required=True, help="the file that keeps the figures")
    options = parser.parse_args(arguments)

    shutil.rmtree(options.samples, ignore_errors=True)
    options.samples.mkdir(parents=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    adopt_orphans()
    with _folder() as folder:
        outcome = _soak(folder, options.samples, options.minutes, options.rate)
    options.figures.parent.mkdir(parents=True, exist_ok=True)
    options.figures.write_text(figures(outcome))
    _say(f"\n{table(outcome.judged)}\n\n{verdict(outcome)}\n\nSamples and logs are in {options.samples}.")
    return 1 if outcome.misses else 0


def _soak(folder: Path, kept: Path, minutes: float, rate: float) -> Outcome:
    leftovers = Leftovers(folder)
    with ExitStack() as stack:
        broker = stack.enter_context(SandboxBroker(folder / "kafka", jvm=WHOLE_HEAP))
        stack.callback(_keep, folder / "kafka" / "broker.log", kept)
        database = stack.enter_context(postgresql())
        create_topics(broker.bootstrap_servers, SOURCE, OUT, partitions=PARTITIONS)
        create_topics(broker.bootstrap_servers, DEAD, PARKED, partitions=2)
        airflow = SandboxAirflow(
            _dags(folder / "dags"),
            connections={"spark_default": LOCAL_SPARK, "kafka_default": kafka_connection(broker.bootstrap_servers)},
            wait_for=("soak", "soak_redrive"),
            home=folder / "airflow",
            database=database.address,
        )
        stack.callback(_keep, folder / "airflow" / "logs", kept)
        stack.enter_context(airflow)
        _say(f"Airflow is up at {airflow.url}")
        reader = Reader(broker.bootstrap_servers)
        production = Production(airflow.api, _say)

        def count() -> dict[str, int]:
            return {
                "temporary files": count_files(airflow.home / "tmp"),
                # Whatever a job drops where it is started.
                "files beside the logs": count_files(airflow.home, "logs", "tmp"),
                "groups": len(reader.groups()),
                "topics": len(reader.topics()),
            }

        with Sampler(kept / SAMPLES, count):
            produced = _produce(broker.bootstrap_servers, production, minutes, rate)
            ended = time.time()
        leftovers.of_runs(airflow.home)
        leftovers.of_kafka(reader.groups(), reader.topics())
        accounts = Accounts(
            produced,
            reader.found(SOURCE, OUT, DEAD, PARKED),
            production.checkpoints_told,
            production.redrives_told,
            reader.lag(GROUP, SOURCE),
        )
    leftovers.of_the_soak()
    between = [later - earlier for earlier, later in pairwise(production.starts)]
    runs = by_run(read_samples(kept / SAMPLES), production.starts, ended)
    return Outcome(
        commit=_commit(),
        minutes=(ended - production.starts[0]) / 60,
        runs=len(production.starts),
        redrives=len(production.redrives),
        every_seconds=statistics.median(between),
        fates=accounts.fates,
        judged=judge(runs, 3600 / statistics.median(between)),
        other_misses=[*production.misses, *accounts.misses, *leftovers.misses],
    )


def _produce(bootstrap_servers: str, production: Production, minutes: float, rate: float) -> int:
    """Let everything go on for so long, and then come to its end: all is read, and what can be fixed is."""
    producer = SteadyProducer(bootstrap_servers, SOURCE, rate)
    producer.start()
    try:
        production.go_on_for(minutes * 60)
    finally:
        produced = producer.stop()
    _say(f"{produced:,} records are produced, and no more come")
    # What is in the topic, also from the last redrive; then what can be fixed, without a way through the topic.
    production.finish_redrive()
    production.run()
    production.redrive("output")
    production.finish_redrive()
    return produced


def _dags(folder: Path) -> Path:
    shutil.copytree(DAGS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder for everything, also for what everything makes as temporary files."""
    folder, before = Path(tempfile.mkdtemp(prefix="kpipe-soak-")), tempfile.tempdir
    try:
        temporary = folder / "tmp"
        temporary.mkdir()
        # The database runs as another user, and goes through both to its own.
        for each in (folder, temporary):
            each.chmod(0o711)
        tempfile.tempdir = str(temporary)
        yield folder
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder)


def _keep(what: Path, folder: Path) -> None:
    if what.is_dir():
        shutil.copytree(what, folder / what.name, dirs_exist_ok=True)
    elif what.exists():
        shutil.copy(what, folder)


def _commit() -> str:
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() or "unknown"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
