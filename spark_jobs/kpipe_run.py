"""The application that spark-submit runs: one bounded job over the ranges of a plan."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from pyspark import SparkContext, TaskContext

from airflow_provider_kpipe.contract.job import Job, unpack
from airflow_provider_kpipe.contract.job_file import take_job
from kpipe_engine.supervision.executors import wait_for_executors
from kpipe_engine.supervision.overdue import end_when_overdue
from kpipe_engine.supervision.task_layout import Task, assign_tasks

log = logging.getLogger("kpipe")


def main(job_file: Path, *read_by_spark: Path) -> int:
    """Run the job of a file that only this user may read. Delete that file and the others."""
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(name)s: %(message)s")
    # The debug log of py4j would show the data for the tasks, which contains secrets.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    for each in read_by_spark:
        each.unlink(missing_ok=True)
    packed, settings = take_job(job_file)
    context = SparkContext()
    try:
        run_job(context, packed, settings)
    finally:
        # `context.stop` would take a second longer: it also waits for the server of accumulators, which this job does
        # not use, and which ends with this process.
        context._jsc.stop()
    return 0


def run_job(context: SparkContext, packed: str, settings: str) -> None:
    job = Job.from_json(unpack(packed))
    end_when_overdue(job)
    if any(planned.cuts for planned in job.plan.pending):
        from kpipe_engine.supervision.spark_task import claim_what_is_cut

        claim_what_is_cut(packed, settings)
    scaling = job.pipeline.partitions
    layout = assign_tasks(job.plan, scaling, cores_of(context) if scaling.interleaves else 1)
    run = partial(run_tasks, context, packed, settings)
    if layout.at_once is None:
        run(layout.tasks)
    else:
        # Spark cannot limit the concurrent tasks of one job, so each task is a job of its own here.
        with ThreadPoolExecutor(layout.at_once, "kpipe-task") as threads:
            list(threads.map(run, [[task] for task in layout.tasks]))


def cores_of(context: SparkContext) -> int:
    """Return how many tasks run at a time. Await a cluster's executors, which start one by one after the driver."""
    if str(context.master).partition("[")[0] == "local":
        return int(context.defaultParallelism)
    spark = context._jsc.sc()
    wanted = spark.conf().getInt("spark.executor.instances", 0)
    # As long as Spark itself waits for executors, on the cluster managers where it does.
    seconds = spark.conf().getTimeAsSeconds("spark.scheduler.maxRegisteredResourcesWaitingTime", "30s")
    # Spark counts the driver, too.
    wait_for_executors(lambda: int(spark.getExecutorMemoryStatus().size()) - 1, wanted, float(seconds))
    return int(context.defaultParallelism)


def run_tasks(context: SparkContext, packed: str, settings: str, tasks: Sequence[Task]) -> None:
    # Of the two ways to run Python on each part of a dataset, this one starts faster.
    parts = context.parallelize(tasks, len(tasks))
    for report in parts.mapPartitions(partial(work, packed, settings)).collect():
        log.info("%s", report)


def work(packed: str, settings: str, tasks: Iterator[Task]) -> Iterator[str]:
    # Imported here, because the driver needs a Kafka client only if a partition is cut.
    from kpipe_engine.supervision.spark_task import run_task

    spark_task = TaskContext.get()
    number = spark_task.taskAttemptId() if spark_task else 0
    for task in tasks:
        for progress in run_task(packed, settings, task, number):
            yield json.dumps(progress)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("kpipe_run.py needs the path of the file with its job: let KpipeRunOperator submit it")
    sys.exit(main(*map(Path, sys.argv[1:])))
