"""Readers of committed records are let go on after a worker was killed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from confluent_kafka import Producer

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.checkpointing.committer import publish
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.planning import ranges as planner
from airflow_provider_kpipe.sandbox import SandboxBroker
from airflow_provider_kpipe.transactions import left_open as transactions
from airflow_provider_kpipe.transactions.left_open import end_open_transactions, end_what_is_left_open
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.wiring import build_worker
from tests.kit.pipelines import Bench
from tests.kit.topics import are_held_back, fill, numbered, read_all
from tests.kit.workers import abandoned, store_offsets


def test_an_open_transaction_is_ended(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(5))
    plan = bench.plan()
    left_open = Producer({**bench.settings, "transactional.id": plan.transactional_id(0)})
    left_open.init_transactions()
    left_open.begin_transaction()
    left_open.produce(bench.output, b"never committed")
    left_open.flush()
    fill(bench.bootstrap, bench.output, numbered(3))
    with Positions(bench.settings) as positions:
        output = positions.topic(bench.output)
        assert positions.latest(output, "read_committed") == {0: 0}

        end_open_transactions(bench.settings, ["another-without-any", plan.transactional_id(0)], seconds=20)

        # The transaction's own record and the marker that ends it, around three of another producer.
        assert positions.latest(output, "read_committed") == {0: 5}


def test_a_cluster_that_is_gone_costs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    gone = {"bootstrap.servers": "127.0.0.1:1"}
    end_open_transactions(gone, ["some-id"], seconds=0.5)
    assert "some-id could not be ended now" in caplog.text


def checkpointed(bench: Bench, plan: Plan) -> int | None:
    """What a checkpoint commits of the first partition, as the operator has it."""
    return publish(bench.settings, plan, bench.settings).partitions[0].committed


def end_all(bench: Bench, plan: Plan) -> None:
    """As the run task does before it submits."""
    with Positions(bench.settings) as positions:
        end_what_is_left_open(positions, bench.settings, plan)


def make(broker: SandboxBroker, partitions: int = 1, **more: Any) -> Bench:
    bench = Bench.make(broker.bootstrap_servers, partitions=partitions, chunk_records=10, **more)
    fill(bench.bootstrap, bench.topic, numbered(40 * partitions, partitions=partitions))
    return bench


def test_the_checkpoint_ends_what_a_killed_task_has_left_open(broker: SandboxBroker) -> None:
    bench = make(broker)
    plan = bench.plan()
    with abandoned(bench.worker(plan), chunks=1):
        assert are_held_back(bench.bootstrap, bench.output)

        assert checkpointed(bench, plan) == 10

        assert not are_held_back(bench.bootstrap, bench.output)
    assert len(read_all(bench.bootstrap, bench.output)) == 10


def test_a_run_over_one_partition_ends_what_an_earlier_one_has_left_open_in_others(broker: SandboxBroker) -> None:
    bench = make(broker, partitions=3)
    older = bench.plan("older")
    with abandoned(bench.worker(older, 1), bench.worker(older, 2)):
        assert are_held_back(bench.bootstrap, bench.output)

        newer = bench.plan("newer", partitions=[0])
        end_all(bench, newer)

        assert not are_held_back(bench.bootstrap, bench.output)
        assert [each.counts.written for each in bench.work(newer)] == [40]
        assert [each.counts.written for each in bench.work(bench.plan("others", partitions=[1, 2]))] == [40, 40]
        assert len(read_all(bench.bootstrap, bench.output)) == 120


def test_of_a_partition_in_pieces_those_of_all_pieces_are_ended(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "SHORTEST_PIECE", 25)
    monkeypatch.setattr(planner, "MOST_PIECES", 4)
    relaxed = PartitionScaling("relax_ordering_within_partition")
    bench = Bench.make(broker.bootstrap_servers, partitions=2, chunk_records=10, scaling=relaxed)
    fill(bench.bootstrap, bench.topic, [dataclasses.replace(each, partition=1) for each in numbered(100)])
    plan = bench.plan()
    job = bench.attempt(plan)
    claim, *others = [
        build_worker(job, bench.kafka, [each], StopSignal(), task) for task, each in enumerate(plan.ranges[1].pieces)
    ]
    assert len(others) == 3
    claim.open()
    claim.close()
    with abandoned(*others[1:]):
        assert are_held_back(bench.bootstrap, bench.output)

        end_all(bench, bench.plan("newer", partitions=[0]))

        assert not are_held_back(bench.bootstrap, bench.output)


def test_a_live_worker_of_the_pipeline_redoes_a_chunk(broker: SandboxBroker) -> None:
    bench = make(broker, partitions=2)
    alive = bench.worker(bench.plan("older"), 1)
    with abandoned(alive):
        end_all(bench, bench.plan("newer", partitions=[0]))
        alive.run_chunks()
    assert alive.assignment[0].progress.complete
    assert len(read_all(bench.bootstrap, bench.output)) == 40


def test_a_newer_run_is_left_alone_by_an_older_one(broker: SandboxBroker) -> None:
    """Also where it works on another partition that has the same writer."""
    bench = make(broker, partitions=65)
    older, newer = bench.plan("older"), bench.plan("newer", partitions=[64])
    alive = bench.worker(newer, 64)
    with abandoned(bench.worker(older, 0), alive):
        end_all(bench, older)
        checkpointed(bench, older)

        alive.store()  # raises if it was fenced
    assert alive.assignment[0].stored == 10


def test_a_worker_killed_between_its_offset_and_its_commit_holds_up_no_checkpoint(broker: SandboxBroker) -> None:
    """What is stored cannot be read while a transaction over it is open."""
    bench = make(broker)
    plan = bench.plan()
    worker = bench.worker(plan)
    with abandoned(worker):
        store_offsets(worker)
        assert checkpointed(bench, plan) is None
        assert not are_held_back(bench.bootstrap, bench.output)


@pytest.mark.parametrize("runs_before", [0, 1], ids=["first", "second"])
def test_a_worker_killed_over_its_lease_holds_up_no_checkpoint(broker: SandboxBroker, runs_before: int) -> None:
    """What is stored says nothing of it yet, or that a run before has come to its end."""
    bench = make(broker)
    if runs_before:
        before = bench.plan("before")
        bench.work(before)
        assert checkpointed(bench, before) == 40
        fill(bench.bootstrap, bench.topic, numbered(10))
    plan = bench.plan()
    worker = bench.worker(plan)
    worker.writer.open()
    worker.retry.rewind(worker.assignment.not_revoked)
    worker.writer.begin()
    try:
        store_offsets(worker)
        assert checkpointed(bench, plan) == (40 if runs_before else None)
        assert len(bench.plan("next").pending) == 1
    finally:
        worker.close()


def test_an_ended_transaction_is_not_asked_about(broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs tens of milliseconds."""
    bench = make(broker, partitions=2, segments=["faulty_kit:odd_ones_fail"], on_fault="stop_partition")
    ends = [(each.state, each.next_offset) for each in bench.work(bench.plan("first"))]
    assert sorted(ends) == [("complete", 40), ("stopped", 0)]
    asked: list[str] = []
    monkeypatch.setattr(transactions, "end_open_transactions", lambda settings, ids, seconds: asked.extend(ids))

    end_all(bench, bench.plan("second"))

    assert asked == []
