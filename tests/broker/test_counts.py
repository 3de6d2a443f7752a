"""The counts of all checkpoints together are those of the records, whoever took over from whom."""

from __future__ import annotations

import json

import pytest

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.checkpoint import Checkpoint
from airflow_provider_kpipe.planning import ranges as planner
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.topics import fill, numbered, read_all

DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")
both_deliveries = pytest.mark.parametrize("delivery", DELIVERIES)
RELAXED = PartitionScaling("relax_ordering_within_partition")


def ids(bench: Bench) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output)]


def counted(*checkpoints: Checkpoint) -> tuple[int, int]:
    """How many were read and written, by all of them together."""
    totals = [each.totals for each in checkpoints]
    return sum(each.read for each in totals), sum(each.written for each in totals)


def work(bench: Bench, job: Job, chunks: int, slot: int = 0) -> None:
    """So many chunks of a piece, or of the whole."""
    begun = bench.piece(job, slot, task=slot + 1)
    begun.open()
    for _ in range(chunks):
        begun.run_chunk()
    begun.close()


def finish(bench: Bench, plan: Plan) -> None:
    """In an attempt of its own."""
    job = bench.claim(plan)
    for slot in range(len(plan.ranges[0].pieces)):
        assert bench.piece(job, slot, task=slot + 1).run()[0].complete


@both_deliveries
@pytest.mark.parametrize("planned", ["before", "after"])
@pytest.mark.parametrize("published", ["never", "first", "last"])
def test_a_newer_run_takes_over(broker: SandboxBroker, delivery: Delivery, planned: str, published: str) -> None:
    """Planned before or after the older run stored 20 of 60, whose checkpoint comes first, last or never."""
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(60))
    older = bench.plan("older")
    newer = bench.plan("newer") if planned == "before" else None
    work(bench, bench.attempt(older), chunks=2)
    checkpoints = [bench.checkpoint(older)] if published == "first" else []
    newer = newer or bench.plan("newer")

    finish(bench, newer)
    checkpoints.append(bench.checkpoint(newer))
    if published == "last":
        checkpoints.append(bench.checkpoint(older))

    assert counted(*checkpoints) == (60, 60)
    assert ids(bench) == list(range(60))


@both_deliveries
def test_a_newer_run_takes_over_what_a_checkpoint_has_told_of_in_between(
    broker: SandboxBroker, delivery: Delivery
) -> None:
    """Its attempt began before the older run had stored anything."""
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery)
    fill(bench.bootstrap, bench.topic, numbered(40))
    older = bench.plan("older")
    fill(bench.bootstrap, bench.topic, numbered(20, start=40))
    newer = bench.plan("newer")
    begun = bench.attempt(newer)
    bench.work(older)
    checkpoints = [bench.checkpoint(older)]
    bench.work(newer, job=begun)
    checkpoints.append(bench.checkpoint(newer))
    assert [each.totals.read for each in checkpoints] == [40, 20]
    assert ids(bench) == list(range(60))


@both_deliveries
def test_a_chain_of_runs_takes_over(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(60))
    plans = [bench.plan(f"run-{number}") for number in range(3)]
    work(bench, bench.attempt(plans[0]), chunks=2)
    work(bench, bench.attempt(plans[1]), chunks=1)
    middle = bench.checkpoint(plans[1])
    finish(bench, plans[2])
    assert counted(middle, bench.checkpoint(plans[2])) == (60, 60)
    assert counted(bench.checkpoint(plans[0])) == (0, 0)


@both_deliveries
def test_a_try_again_keeps_what_was_inherited(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(60))
    older, newer = bench.plan("older"), bench.plan("newer")
    work(bench, bench.attempt(older), chunks=2)
    work(bench, bench.attempt(newer), chunks=1)
    finish(bench, newer)
    assert counted(bench.checkpoint(newer)) == (60, 60)


@both_deliveries
@pytest.mark.parametrize("planned", ["before", "after"])
@pytest.mark.parametrize("published", ["never", "first", "last"])
@pytest.mark.parametrize("scaling", [RELAXED, PartitionScaling()], ids=["relaxed", "ordered"])
def test_a_newer_run_takes_pieces_over(
    broker: SandboxBroker,
    delivery: Delivery,
    planned: str,
    published: str,
    scaling: PartitionScaling,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The older run has stored a part of its first piece, all of the second, and a part of the third."""
    monkeypatch.setattr(planner, "SHORTEST_PIECE", 25)
    monkeypatch.setattr(planner, "MOST_PIECES", 4)
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10, scaling=RELAXED)
    fill(bench.bootstrap, bench.topic, numbered(100))
    other = bench.with_scaling(scaling)
    older = bench.plan("older")
    newer = other.plan("newer") if planned == "before" else None
    job = bench.claim(older)
    for slot, chunks in enumerate((1, 3, 2)):
        work(bench, job, chunks, slot)
    checkpoints = [bench.checkpoint(older)] if published == "first" else []
    newer = newer or other.plan("newer")

    finish(other, newer)
    checkpoints.append(other.checkpoint(newer))
    if published == "last":
        checkpoints.append(bench.checkpoint(older))

    assert sorted(ids(bench)) == list(range(100))
    assert counted(*checkpoints) == (100, 100)
