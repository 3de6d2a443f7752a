"""Whole jobs on a real Spark: what they write, what they show, and what is left of them when they are killed."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import descendants, driver_jvm, end_transactions, python_workers, run_job, running_job, wait_for
from tests.kit.pipelines import Bench
from tests.kit.processes import outlasting
from tests.kit.topics import committed, fill, numbered, read_all

PARTITIONS = 4


def test_a_job_runs_every_range_and_says_how_far_it_came(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=3, segments=["orders_kit:only_even"])
    fill(bench.bootstrap, bench.topic, numbered(3_000, partitions=3))
    plan = bench.plan()

    code, output = run_job(bench, plan)

    assert code == 0, output
    with Positions(bench.settings) as positions:
        progress = positions.progress(plan)
    assert [(each.state, each.counts.read) for each in progress] == [("complete", 1_000)] * 3
    assert sum(each.counts.written for each in progress) == 1_500
    assert len(read_all(bench.bootstrap, bench.output)) == 1_500
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 3) == {}
    assert bench.checkpoint(plan).complete
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 3) == {0: 1_000, 1: 1_000, 2: 1_000}


def test_a_partition_that_stops_leaves_the_others_alone(
    broker: SandboxBroker, run_warm: Callable[[Bench, Plan], str]
) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2, segments=["orders_kit:parse"], dead_letter=None)
    records = numbered(200, partitions=2)
    records[101] = type(records[101])(b"{broken", b"101", partition=1)
    fill(bench.bootstrap, bench.topic, records)
    plan = bench.plan()

    run_warm(bench, plan)

    checkpoint = bench.checkpoint(plan)
    assert [(each.committed, each.complete) for each in checkpoint.partitions] == [(100, True), (50, False)]
    assert "JSONDecodeError" in (checkpoint.partitions[1].reason or "")


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_killed_in_the_middle_and_run_again_every_record_is_there(
    broker: SandboxBroker, run_warm: Callable[[Bench, Plan], str], delivery: Delivery, tmp_path: Path
) -> None:
    records, chunk = 20_000, 800
    bench = Bench.make(
        broker.bootstrap_servers,
        PARTITIONS,
        delivery=delivery,
        chunk_records=chunk,
        segments=["waiting_kit:held_up"],
    )
    # No partition gets past these before the killer has looked, however late that is.
    gates = {records * 2 // 5: tmp_path / "first", records * 4 // 5: tmp_path / "second"}
    sent = numbered(records, PARTITIONS)
    for at, gate in gates.items():
        held = json.dumps({"id": at, "gate": str(gate)}).encode()
        sent[at : at + PARTITIONS] = [replace(each, value=held) for each in sent[at : at + PARTITIONS]]
    fill(bench.bootstrap, bench.topic, sent)
    plan = bench.plan()

    with running_job(bench, plan) as job:
        wait_for(lambda: _stored(bench, plan) >= chunk, "a first chunk")
        victim = python_workers(job.pid)[0]
        victim.send_signal(signal.SIGKILL)
        job.wait(60)
    end_transactions(bench, plan)
    before = _stored(bench, plan)
    assert before < records
    gates[records * 2 // 5].touch()
    with running_job(bench, plan) as job:
        wait_for(lambda: _stored(bench, plan) >= before + chunk, "a chunk of the second try")
        driver_jvm(job.pid).send_signal(signal.SIGKILL)
        job.wait(60)
    end_transactions(bench, plan)
    assert _stored(bench, plan) < records
    # Nothing is published by then, whatever was stored.
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, PARTITIONS) == {}
    gates[records * 4 // 5].touch()
    run_warm(bench, plan)

    assert _stored(bench, plan) == records
    times = Counter(record.key for record in read_all(bench.bootstrap, bench.output))
    assert len(times) == records
    if delivery == "exactly_once":
        assert set(times.values()) == {1}
    assert bench.checkpoint(plan).totals.read == records


def test_nothing_of_a_job_outlives_the_task_that_is_killed_outright(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["orders_kit:slowly"])
    fill(bench.bootstrap, bench.topic, numbered(50_000))
    plan = bench.plan()
    with running_job(bench, plan) as job:
        wait_for(lambda: bool(python_workers(job.pid)), "a worker")
        family = descendants(job.pid)
        assert len(family) >= 4
        os.kill(job.pid, signal.SIGKILL)

        assert [each.cmdline() for each in outlasting(family, 60)] == []


def _stored(bench: Bench, plan: Plan) -> int:
    with Positions(bench.settings) as positions:
        return sum(each.next_offset - each.range.start for each in positions.progress(plan))
