"""How many partitions a real Spark works on at once, in each mode, and what becomes of a thousand of them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.running.stop_requests import request_stop
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from airflow_provider_kpipe.spark.application import spark_jobs_folder
from tests.kit.jobs import running_job, wait_for
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, committed, fill, numbered, read_all

RunWarm = Callable[[Bench, Plan], str]

PARTITIONS = 6


def make(broker: SandboxBroker, meeting: Path, need: int, **scaling: Any) -> Bench:
    bench = Bench.make(broker.bootstrap_servers, partitions=PARTITIONS, segments=["waiting_kit:Meets"])
    create_topics(broker.bootstrap_servers, f"{bench.topic}.events", partitions=1)
    value = json.dumps({"meeting": str(meeting), "need": need}).encode()
    # The first partition has more records than the others.
    spread = [each % PARTITIONS for each in range(40 * PARTITIONS)] + [0] * 80
    fill(bench.bootstrap, bench.topic, [Sent(value, b"k", partition=each) for each in spread])
    return bench.with_scaling(PartitionScaling(**scaling, events_topic=f"{bench.topic}.events"))


def at_once(bench: Bench) -> list[int]:
    """How many partitions were being worked on after each beginning and each end, in the order of time."""
    records = read_all(bench.bootstrap, f"{bench.topic}.events")
    events = sorted((json.loads(record.value or b"") for record in records), key=lambda each: str(each["at"]))
    steps = [{"assigned": 1, "completed": -1}.get(each["event"], 0) for each in events]
    return list(accumulate(step for step in steps if step))


@pytest.mark.parametrize(
    ("scaling", "most"),
    [
        ({}, 4),
        ({"max_concurrent_partitions": 3}, 3),
        ({"max_concurrent_partitions": 1}, 1),
        ({"execution_mode": "parallelize_across_partitions"}, PARTITIONS),
        ({"execution_mode": "parallelize_across_partitions", "max_concurrent_partitions": 5}, 5),
    ],
    ids=str,
)
def test_the_limit_is_never_exceeded_and_fully_used(
    broker: SandboxBroker, run_warm: RunWarm, tmp_path: Path, scaling: dict[str, Any], most: int
) -> None:
    # Each of the first partitions waits until so many are at work.
    bench = make(broker, tmp_path, most, **scaling)

    run_warm(bench, bench.plan())

    counts = at_once(bench)
    assert len(counts) == 2 * PARTITIONS
    assert max(counts) == most
    assert len(read_all(bench.bootstrap, bench.output)) == 40 * PARTITIONS + 80


def test_a_thousand_partitions_are_planned_run_and_published(broker: SandboxBroker, run_warm: RunWarm) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=1_000, outputs=4)
    fill(bench.bootstrap, bench.topic, numbered(20_000, 1_000))
    plan = bench.plan()

    run_warm(bench, plan)

    checkpoint = bench.checkpoint(plan)
    assert checkpoint.complete
    assert (checkpoint.totals.read, checkpoint.totals.written) == (20_000, 20_000)
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1_000) == dict.fromkeys(range(1_000), 20)
    times = Counter(record.key for record in read_all(bench.bootstrap, bench.output))
    assert (len(times), set(times.values())) == (20_000, {1})


def test_a_hot_partition_is_shared_by_several_tasks(broker: SandboxBroker, run_warm: RunWarm) -> None:
    bench = Bench.make(
        broker.bootstrap_servers,
        partitions=2,
        segments=["orders_kit:parse"],
        scaling=PartitionScaling("relax_ordering_within_partition"),
    )
    fill(bench.bootstrap, bench.topic, [*numbered(30_000), *numbered(10_000, start=30_000)])
    plan = bench.plan()
    assert len(plan.ranges[0].pieces) == 2

    output = run_warm(bench, plan)

    assert len(_writers(output)) == 2
    checkpoint = bench.checkpoint(plan)
    assert (checkpoint.complete, checkpoint.totals.read) == (True, 40_000)
    times = Counter(record.key for record in read_all(bench.bootstrap, bench.output))
    assert (len(times), set(times.values())) == (40_000, {1})


def test_a_job_that_is_asked_to_stop_stores_what_is_in_flight(
    broker: SandboxBroker, record_property: Callable[[str, object], None]
) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2, segments=["orders_kit:slowly"], chunk_seconds=600.0)
    fill(bench.bootstrap, bench.topic, numbered(20_000, 2))
    plan = bench.plan()
    with running_job(bench, plan) as job:
        wait_for(lambda: all(each.started for each in _progress(bench, plan)), "both partitions")
        asked = time.monotonic()
        request_stop(bench.settings, plan, job.attempt, "the task was asked to stop")
        # The chunk would have gone on for ten minutes.
        wait_for(lambda: all(each.state == "yielded" for each in _progress(bench, plan)), "the yield of both", 30)
        record_property("stop_latency_seconds", round(time.monotonic() - asked, 2))
        output = job.output()
        assert job.wait() == 0, output

    progress = _progress(bench, plan)
    assert {each.state for each in progress} == {"yielded"}
    written = len(read_all(bench.bootstrap, bench.output))
    assert 0 < written == sum(each.next_offset for each in progress) < 20_000


def _progress(bench: Bench, plan: Plan) -> list[Any]:
    with Positions(bench.settings) as positions:
        return positions.progress(plan)


def _writers(output: str) -> set[int]:
    """The offsets at which pieces of partition 0 start, as their events tell."""
    lines = [line.partition("kpipe.events: ")[2] for line in output.splitlines() if "kpipe.events: " in line]
    events = [json.JSONDecoder().raw_decode(line)[0] for line in lines]
    return {each["start"] for each in events if each["event"] == "started" and each["partition"] == 0}


CLUSTER = """
import sys
sys.path[:0] = {paths!r}
from pyspark import SparkConf, SparkContext
from kpipe_run import cores_of

settings = {{
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.instances": "2",
    # However long they take here.
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "10min",
}}
context = SparkContext(conf=SparkConf().setMaster("local-cluster[2,2,1024]").setAll(settings.items()))
print("cores:", cores_of(context))
context.stop()
"""


def test_the_executors_of_a_cluster_are_waited_for(tmp_path: Path) -> None:
    """They come after the driver is up, and until then Spark says that there are two cores."""
    paths = [str(spark_jobs_folder()), str(spark_jobs_folder().parent)]
    script = CLUSTER.format(paths=paths)
    command = [sys.executable, "-c", script]
    # Spark puts the executors' work folders here.
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "cores: 4" in done.stdout, done.stderr
