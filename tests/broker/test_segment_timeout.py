"""Records over which a segment hangs, on a real broker."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pipelines import Bench
from tasks import work_in_task
from topics import Sent, fill, read_all

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.contract.policies import RetryPolicy
from airflow_provider_kpipe.sandbox import SandboxBroker

RECORDS, CULPRIT = 60, 41
RELAXED = PartitionScaling("relax_ordering_within_partition", max_in_flight_per_partition=4)
INTERRUPTED = {
    "record": ("sleep", {"segments": ["deadly_kit:deadly"]}),
    "batch": ("sleep", {"segments": ["deadly_kit:deadly_batch"]}),
    "coroutine": ("await", {"segments": ["deadly_kit:deadly_async"], "scaling": RELAXED}),
}
ENDED = {
    "in C": ("hang", {"segments": ["deadly_kit:deadly"]}),
    "batch in C": ("hang", {"segments": ["deadly_kit:deadly_batch"]}),
    "thread": ("sleep", {"segments": ["deadly_kit:deadly"], "scaling": RELAXED}),
    "coroutine that holds up the loop": ("sleep", {"segments": ["deadly_kit:deadly_async"], "scaling": RELAXED}),
}


def filled(broker: SandboxBroker, fate: str, **spec: Any) -> Bench:
    bench = Bench.make(broker.bootstrap_servers, segment_timeout=0.5, **spec)
    fates = {CULPRIT: fate}
    fill(
        bench.bootstrap,
        bench.topic,
        [Sent(json.dumps({"id": each, "fate": fates.get(each, "")}).encode()) for each in range(RECORDS)],
    )
    return bench


def ids(bench: Bench, topic: str) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, topic)]


@pytest.mark.parametrize("mode", INTERRUPTED)
def test_a_segment_that_hangs_is_interrupted_and_its_record_faults(broker: SandboxBroker, mode: str) -> None:
    fate, spec = INTERRUPTED[mode]
    bench = filled(broker, fate, retry=RetryPolicy.fixed(2, 0, retry_on=["SegmentTimeoutError"]), **spec)

    (progress,) = bench.work(bench.plan())

    assert (progress.complete, progress.counts.retried, progress.counts.dead_lettered) == (True, 1, 1)
    assert ids(bench, bench.output) == [each for each in range(RECORDS) if each != CULPRIT]
    (letter,) = read_all(bench.bootstrap, bench.dead)
    assert json.loads(letter.value or b"")["id"] == CULPRIT
    assert letter.header("kpipe-fault-kind") == "timeout"
    assert letter.header("kpipe-fault-component") == spec["segments"][0]
    assert letter.header("kpipe-fault-exception") == "kpipe_engine.errors.SegmentTimeoutError"
    assert letter.header("kpipe-fault-message") == "no answer within segment_timeout, 0.5 s"
    assert letter.header("kpipe-fault-attempts") == "2"


@pytest.mark.parametrize("mode", ENDED)
def test_a_segment_that_cannot_be_interrupted_ends_with_its_worker_and_its_record_is_found(
    broker: SandboxBroker, mode: str
) -> None:
    fate, spec = ENDED[mode]
    bench = filled(broker, fate, **spec)

    (progress,), said = work_in_task(bench, bench.plan())

    assert progress["state"] == "complete", said
    assert ids(bench, bench.output) == [each for each in range(RECORDS) if each != CULPRIT]
    (letter,) = read_all(bench.bootstrap, bench.dead)
    assert json.loads(letter.value or b"")["id"] == CULPRIT
    assert letter.header("kpipe-fault-kind") == "timeout"
    assert "was ended, as a segment had not answered within 0.5 s" in letter.header("kpipe-fault-message")
    assert "in meet" in letter.header("kpipe-fault-stacktrace")


@pytest.mark.parametrize("fate", ["sleep", "hang"])
def test_the_policy_for_faults_decides(broker: SandboxBroker, fate: str) -> None:
    bench = filled(broker, fate, segments=["deadly_kit:deadly"], on_fault="stop_partition")
    (progress,), _ = work_in_task(bench, bench.plan())
    assert (progress["state"], progress["stored"]) == ("stopped", CULPRIT)
    assert f"offset {CULPRIT}: timeout deadly_kit:deadly" in progress["reason"]
    assert ids(bench, bench.output) == list(range(CULPRIT))
