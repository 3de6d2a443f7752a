"""The benchmark: kpipe and its peers, side by side in one run. See README.md beside this file."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from airflow_provider_kpipe.sandbox import FAST_JVM, SandboxBroker, SandboxError
from bench import readme
from bench.bars import BARS, MEMORY_MEGABYTES
from bench.charts import chart
from bench.entrants import all_kpipe, all_peers
from bench.machine import describe_machine, describe_versions
from bench.memory import measure_memory
from bench.peers import SparkEnvironment, prepare_airflow_kafka, prepare_spark
from bench.report import MemoryPeak, Results, Step, Timing, summarise, to_json, to_markdown
from bench.rounds import Rounds
from bench.sizes import MEMORY, SMALL_RUN, Sizes, choose_sizes
from bench.small_run import measure_small_run
from bench.work import BenchError

log = logging.getLogger("bench")

RESULTS = Path(__file__).with_name("results")
LATEST = "latest"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    try:
        sizes = choose_sizes(options.work, quick=options.quick, records=options.records)
        results = run(sizes, options.seed, quick=options.quick)
    except (BenchError, SandboxError) as error:
        log.error("%s", error)
        return 1
    except KeyboardInterrupt:
        return 130
    name = _name(options)
    write(results, options.results, name)
    if name == LATEST and options.results == RESULTS:
        readme.update(to_json(results))
    return 0


def run(sizes: Sizes, shuffle_seed: int, *, quick: bool) -> Results:
    """Run the benchmark. It only reports a missed bar, but fails on wrong output."""
    spark = prepare_spark()
    airflow_kafka = prepare_airflow_kafka()
    about: dict[str, Any] = {
        "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "quick": quick,
        "seed": shuffle_seed,
        "machine": describe_machine(),
        "versions": describe_versions(spark, airflow_kafka),
    }
    with tempfile.TemporaryDirectory(prefix="kpipe-bench-") as name, SandboxBroker(jvm=FAST_JVM) as broker:
        timings, memory, steps = _measure(
            sizes, shuffle_seed, broker.bootstrap_servers, spark, airflow_kafka, Path(name)
        )
    return Results(about, timings, BARS, memory, MEMORY_MEGABYTES, steps)


def _measure(
    sizes: Sizes, shuffle_seed: int, servers: str, spark: SparkEnvironment, airflow_kafka: Path, folder: Path
) -> tuple[list[Timing], list[MemoryPeak], list[Step]]:
    timings: list[Timing] = []
    memory: list[MemoryPeak] = []
    steps: list[Step] = []
    kpipe = all_kpipe(folder)
    if SMALL_RUN in sizes.extras:
        timings, steps = measure_small_run(servers, spark, folder, sizes.warm_rounds, shuffle_seed)
    if MEMORY in sizes.extras:
        memory = measure_memory(servers, kpipe, sizes.memory_records)
    with Rounds(servers, [*kpipe, *all_peers(spark, airflow_kafka, folder)], shuffle_seed) as rounds:
        for heat in sizes.heats:
            timings += rounds.measure(heat, sizes.warm_rounds, sizes.cold_rounds)
    return timings, memory, steps


def write(results: Results, folder: Path, name: str) -> None:
    """Write the numbers, the tables, and a chart for each work."""
    folder.mkdir(parents=True, exist_ok=True)
    table = to_markdown(results)
    (folder / f"{name}.json").write_text(json.dumps(to_json(results), indent=2) + "\n")
    (folder / f"{name}.md").write_text(table)
    for old in folder.glob(f"{name}-*.svg"):
        old.unlink()
    summaries = summarise(results.timings)
    for work, mode in dict.fromkeys((each.work, each.mode) for each in summaries):
        shown = [each for each in summaries if (each.work, each.mode) == (work, mode)]
        title = f"{work}, {mode}: {shown[0].records:,} records"
        slug = f"{work}-{mode}".replace(" ", "-").replace(",", "")
        (folder / f"{name}-{slug}.svg").write_text(chart(title, shown, results.about))
    sys.stdout.write(table)


def _name(options: argparse.Namespace) -> str:
    """Name the results: `latest` for one whole run, `partial-...` for less."""
    whole = not (options.work or options.quick or options.records)
    return LATEST if whole else "-".join(["partial", *filter(None, [options.work, "quick" if options.quick else ""])])


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="copy, JSON and Arrow only, fewer records: a few minutes")
    parser.add_argument("--work", help="measure this work only, with those that it is compared with")
    parser.add_argument("--records", type=int, help="so many records at most, whatever the work")
    parser.add_argument("--seed", type=int, default=1, help="shuffles the order of the contestants")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
