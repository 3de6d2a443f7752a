"""Profile of a worker: `python -m bench.hot_spots json` passes a work's records through its code, under cProfile.

It runs only the worker's code, in this process, without Spark, one partition at a time. The profile leaves out
librdkafka's own threads: compare the sum with the wall clock. The profiler makes calls slower than they are, so use it
to find hot spots, and `make bench WORK=...` to measure an improvement.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import sys
import time
from collections.abc import Sequence

from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.sandbox import FAST_JVM, SandboxBroker
from airflow_provider_kpipe.spark.application import spark_jobs_folder
from bench.contestants.kpipe import planned_job, settings_of
from bench.data import check_output, seed, written_topics
from bench.processes import TASKS
from bench.work import Job, Work
from bench.works import WORKS

ROWS = 25


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.hot_spots", description=__doc__.splitlines()[0])
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--delivery", choices=("exactly_once", "at_least_once"), default="exactly_once")
    options = parser.parse_args(arguments)
    # On executors, Spark ships the engine and the segments as files.
    sys.path[:0] = [str(spark_jobs_folder()), str(TASKS)]
    with SandboxBroker(jvm=FAST_JVM) as broker:
        work = WORKS[options.work].with_records(options.records)
        seed(broker.bootstrap_servers, work.records)
        job = Job(work, broker.bootstrap_servers, "hot-spots")
        with written_topics(job):
            profile(work, job, options.delivery)
            check_output(job, unique=True)
    return 0


def profile(work: Work, job: Job, delivery: Delivery) -> None:
    from kpipe_engine.stop_signal import StopSignal
    from kpipe_engine.wiring import build_worker

    planned, settings = planned_job(job, delivery), settings_of(job)
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    profiler, begin = cProfile.Profile(), time.perf_counter()
    for each in planned.plan.pending:
        worker = build_worker(planned, settings, [each], StopSignal())
        profiler.enable()
        worker.run()
        profiler.disable()
    seconds = time.perf_counter() - begin
    sys.stdout.write(f"{work.name}, {delivery}: {work.records.count:,} records in {seconds:.2f} s under the profiler\n")
    pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(ROWS)


if __name__ == "__main__":
    sys.exit(main())
