"""Partitions that are given up before their end: what is stored, what is written, and who goes on."""

from __future__ import annotations

import json
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import orders_kit
import pytest

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.pipeline.scaling import RebalanceMode
from airflow_provider_kpipe.running.stop_requests import request_stop
from airflow_provider_kpipe.sandbox import SandboxBroker
from kpipe_engine import stop_signal as yielding
from kpipe_engine.stop_signal import KafkaStopSignal, StopSignal
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.topics import committed, fill, numbered, read_all
from tests.kit.workers import Working

DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")
MODES: tuple[RebalanceMode, ...] = ("drain_and_yield", "stop_accepting_new_work_and_yield")
RECORDS = 2_000


def make(broker: SandboxBroker, delivery: Delivery, mode: RebalanceMode, **spec: Any) -> Bench:
    scaling = PartitionScaling(rebalance_mode=mode)
    return Bench.make(
        broker.bootstrap_servers,
        delivery=delivery,
        segments=["orders_kit:slowly"],
        scaling=scaling,
        **spec,
    )


def ids(bench: Bench, isolation: str = "read_committed") -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output, isolation)]


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("mode", MODES)
def test_a_chunk_in_flight_is_finished_or_given_up(
    broker: SandboxBroker, delivery: Delivery, mode: RebalanceMode
) -> None:
    # One chunk holds everything: whatever is stored when it yields is what was in flight.
    bench = make(broker, delivery, mode, chunk_seconds=600.0)
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    plan, stop_signal = bench.plan(), StopSignal()
    working = Working(bench.worker(plan, stop_signal=stop_signal))
    working.start()
    wait_for(lambda: working.worker.assignment[0].counts.read > 100 or not working.is_alive(), "a hundred records")

    stop_signal.request("somebody stopped the task")
    working.join(60)

    (progress,) = working.progress
    assert (progress.state, progress.reason) == ("yielded", "somebody stopped the task")
    stored = committed(bench.bootstrap, f"{bench.pipeline.group}.kpipe", bench.topic, 1)
    assert stored == {0: progress.next_offset}
    if mode == "drain_and_yield":
        assert 100 < progress.next_offset < RECORDS
    else:
        assert progress.next_offset == 0
    if mode == "drain_and_yield" or delivery == "exactly_once":
        assert ids(bench) == list(range(progress.next_offset))

    # The checkpoint commits the completed prefix, and the next plan goes on from there.
    checkpoint = bench.checkpoint(plan)
    assert (checkpoint.complete, checkpoint.partitions[0].reason) == (False, "somebody stopped the task")
    again = bench.plan(run_key="next")
    assert (again.ranges[0].start, again.ranges[0].end) == (progress.next_offset, RECORDS)


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_was_stopped_loses_nothing_when_it_goes_on(
    broker: SandboxBroker, delivery: Delivery, mode: RebalanceMode
) -> None:
    bench = make(broker, delivery, mode, chunk_records=50)
    fill(bench.bootstrap, bench.topic, numbered(400))
    plan, stop_signal = bench.plan(), StopSignal()
    working = Working(bench.worker(plan, stop_signal=stop_signal))
    working.start()
    wait_for(lambda: working.worker.assignment[0].stored >= 100 or not working.is_alive(), "two chunks")
    stop_signal.request("somebody stopped the task")
    working.join(60)
    assert working.progress[0].state == "yielded"

    (progress,) = bench.work(plan)

    assert progress.complete
    assert progress.counts.read == 400
    if delivery == "exactly_once":
        assert ids(bench) == list(range(400))
    else:
        assert set(ids(bench)) == set(range(400))


def test_a_partition_that_has_not_begun_by_the_deadline_says_so(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))

    (progress,) = bench.work(bench.plan(), stop_signal=StopSignal(deadline=time.time() - 1))

    assert (progress.state, progress.next_offset) == ("yielded", 0)
    assert progress.reason == "the run has reached its max_run_time"
    assert ids(bench) == []


def test_a_run_ends_at_its_deadline(broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make(broker, "exactly_once", "drain_and_yield", chunk_seconds=600.0)
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    # It comes when the worker is at work, however long that takes to start.
    clock, handled = SimpleNamespace(now=time.time()), iter(range(RECORDS))

    def slowly(record: Any) -> Any:
        if next(handled) == 100:
            clock.now += 3_600
        return record

    monkeypatch.setattr(orders_kit, "slowly", slowly)
    monkeypatch.setattr(yielding, "time", SimpleNamespace(time=lambda: clock.now))
    (progress,) = bench.work(bench.plan(), stop_signal=StopSignal(deadline=clock.now + 3_600))

    assert (progress.state, progress.reason) == ("yielded", "the run has reached its max_run_time")
    assert 100 < progress.next_offset < RECORDS
    assert ids(bench) == list(range(progress.next_offset))


def test_a_request_in_kafka_reaches_a_job_and_no_other_attempt_of_it(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: Counter[KafkaStopSignal] = Counter()
    look = KafkaStopSignal._look

    def counted(stop_signal: KafkaStopSignal, *arguments: Any) -> None:
        look(stop_signal, *arguments)
        looks[stop_signal] += 1

    monkeypatch.setattr(KafkaStopSignal, "_look", counted)
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    plan = bench.plan()
    job, other = bench.attempt(plan), bench.attempt(plan)
    with KafkaStopSignal(job, bench.settings) as ours, KafkaStopSignal(other, bench.settings) as others:
        request_stop(bench.settings, plan, job.attempt, "the task was asked to stop")
        wait_for(lambda: ours.is_set, "the request")
        # The look that they are at may have begun before the request.
        before = looks[others]
        wait_for(lambda: looks[others] > before + 1, "another look of the others")
        assert ours.reason == "the task was asked to stop"
        assert not others.is_set


def test_a_partition_that_waits_for_a_next_try_yields_at_once(broker: SandboxBroker) -> None:
    from airflow_provider_kpipe import RetryPolicy

    bench = Bench.make(
        broker.bootstrap_servers, segments=["orders_kit:parse"], retry=RetryPolicy.fixed(2, 3_000), chunk_seconds=1.0
    )
    fill(bench.bootstrap, bench.topic, [*numbered(5), type(numbered(1)[0])(b"{broken", b"5")])
    stop_signal = StopSignal()
    working = Working(bench.worker(bench.plan(), stop_signal=stop_signal))
    working.start()
    wait_for(
        lambda: working.worker.assignment[0].stored == 5 or not working.is_alive(), "what lies before the broken one"
    )

    stop_signal.request("somebody stopped the task")
    working.join(60)

    assert not working.is_alive()
    assert (working.progress[0].state, working.progress[0].next_offset) == ("yielded", 5)
