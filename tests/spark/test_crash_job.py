"""Whole jobs on a real Spark over records that end their process."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import partition_workers, run_job, running_job, wait_for
from tests.kit.pipelines import Bench
from tests.kit.topics import fill, numbered, read_all

RECORDS, PARTITIONS = 6_000, 4
FATES = {1_001: "segfault", 3_002: "exit", 4_003: "eat"}


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_every_other_record_of_all_partitions_passes(broker: SandboxBroker, delivery: Delivery) -> None:
    spec: dict[str, Any] = {"segments": ["deadly_kit:deadly"], "worker_memory_mb": 1_024}
    bench = Bench.make(broker.bootstrap_servers, PARTITIONS, delivery=delivery, **spec)
    sent = [
        replace(each, value=json.dumps({"id": number, "fate": FATES.get(number, "")}).encode())
        for number, each in enumerate(numbered(RECORDS, PARTITIONS))
    ]
    fill(bench.bootstrap, bench.topic, sent)
    plan = bench.plan()

    code, output = run_job(bench, plan)

    assert code == 0, output
    with Positions(bench.settings) as positions:
        assert {each.state for each in positions.progress(plan)} == {"complete"}
    dead = {int(each.key or b""): each for each in read_all(bench.bootstrap, bench.dead)}
    assert {number: letter.value for number, letter in dead.items()} == {each: sent[each].value for each in FATES}
    assert dead[1_001].header("kpipe-fault-kind") == dead[3_002].header("kpipe-fault-kind") == "crash"
    assert "SIGSEGV" in dead[1_001].header("kpipe-fault-message")
    assert "exit code 3" in dead[3_002].header("kpipe-fault-message")
    written = [int(each.key or b"") for each in read_all(bench.bootstrap, bench.output)]
    assert set(written) == set(range(RECORDS)) - FATES.keys()
    if delivery == "exactly_once":
        assert len(written) == len(set(written))


def test_a_worker_that_somebody_kills_costs_a_job_nothing_but_time(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, 2, segments=["orders_kit:unhurriedly"], chunk_records=500)
    fill(bench.bootstrap, bench.topic, numbered(10_000, 2))
    plan = bench.plan()
    with running_job(bench, plan) as job:
        wait_for(lambda: bool(partition_workers(job.pid)), "a worker")
        partition_workers(job.pid)[0].send_signal(signal.SIGKILL)
        code, output = job.wait(120), job.output()
    assert code == 0, output
    assert "was killed by SIGKILL" in output
    assert sorted(int(each.key or b"") for each in read_all(bench.bootstrap, bench.output)) == list(range(10_000))
    assert read_all(bench.bootstrap, bench.dead) == []
