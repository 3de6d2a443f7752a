"""CPU time: `python -m bench.cpu_time json arrow` does works in warm sessions, kpipe and Spark in turn.

For each job it prints the records per second, and for a record the microseconds of CPU in the broker, in Spark's JVM
and in its Python workers. On a machine that they share, the sum limits the speed of a work. It includes the broker's
compiler until that has warmed up: believe the later rounds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import psutil

from airflow_provider_kpipe.sandbox import FAST_JVM, SandboxBroker
from bench.contestants import Contestant
from bench.contestants.kpipe import Kpipe
from bench.contestants.spark_arrow import spark_arrow
from bench.contestants.spark_batch import spark_batch
from bench.data import seed, written_topics
from bench.peers import prepare_spark
from bench.work import Job, Work
from bench.works import WORKS

KINDS = ("broker", "JVM", "Python")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cpu_time", description=__doc__.splitlines()[0])
    parser.add_argument("works", nargs="+", choices=WORKS, metavar="work", help=", ".join(WORKS))
    parser.add_argument("--records", type=int, help="so many of each work")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    works = [WORKS[name] for name in options.works]
    if options.records:
        works = [work.with_records(options.records) for work in works]
    with tempfile.TemporaryDirectory(prefix="kpipe-bench-") as folder, SandboxBroker(jvm=FAST_JVM) as broker:
        measure(works, options.rounds, broker.bootstrap_servers, Path(folder))
    return 0


def measure(works: Sequence[Work], rounds: int, servers: str, folder: Path) -> None:
    spark = prepare_spark()
    everybody: list[Contestant] = [Kpipe("exactly_once", folder), Kpipe("at_least_once", folder)]
    everybody += [spark_batch(spark, folder), spark_arrow(spark, folder)]
    taking_part = [each for each in everybody if any(each.name in work.warm for work in works)]
    for records in {work.records for work in works}:
        seed(servers, records)
    try:
        for contestant in taking_part:
            contestant.start()
        names = " ".join(f"{name:>8}" for name in (*KINDS, "sum", "busy"))
        sys.stdout.write(f"{'':44} records/s {names}\n")
        turns = [(work, each) for work in works for each in taking_part if each.name in work.warm]
        for number, (work, contestant) in enumerate(turns * rounds):
            report(Job(work, servers, f"job-{number}"), contestant)
    finally:
        for contestant in taking_part:
            contestant.close()


def report(job: Job, contestant: Contestant) -> None:
    count = job.work.records.count
    with written_topics(job):
        before = _spent()
        seconds = contestant.run(job)
        spent = _spent() - before
    each = {kind: spent[kind] / count for kind in KINDS}
    busy = spent.total() / 1e6 / seconds / (psutil.cpu_count() or 1)
    shares = " ".join(f"{each[kind]:8.2f}" for kind in KINDS)
    who = f"{job.work.name}, {contestant.name}"
    sys.stdout.write(f"{who:44} {count / seconds:9,.0f} {shares} {sum(each.values()):8.2f} {busy:8.0%}\n")
    sys.stdout.flush()


def kind_of(command: Sequence[str]) -> str:
    """Return the kind of a process. A driver in Python counts with its workers: it has little to do."""
    if "kafka.Kafka" in command:
        return "broker"
    return "JVM" if any(word.startswith("org.apache.spark.") for word in command) else "Python"


def _spent() -> Counter[str]:
    """Return the microseconds of CPU so far, by kind of process."""
    spent: Counter[str] = Counter()
    for process in psutil.Process().children(recursive=True):
        try:
            times, words = process.cpu_times(), process.cmdline()
        except psutil.Error:
            continue
        spent[kind_of(words)] += round((times.user + times.system) * 1e6)
    return spent


if __name__ == "__main__":
    sys.exit(main())
