"""What is stored beside an offset fits, whatever is told of a run, and is found again."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import telling_kit

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.contract.faults.causes import Cause
from airflow_provider_kpipe.contract.offsets.limits import Explicit
from airflow_provider_kpipe.contract.offsets.metadata import (
    LEAST_METADATA_BYTES,
    METADATA_BYTES,
    SPAN_BYTES,
    most_spans,
    shortened,
)
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.planning import ranges as planner
from airflow_provider_kpipe.sandbox import SandboxBroker
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.wiring import build_worker
from tests.kit.pipelines import Bench
from tests.kit.topics import committed, fill, held, numbered, read_all

DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")
both_deliveries = pytest.mark.parametrize("delivery", DELIVERIES)
RUN_KEY = shortened("帳" * 250 + "/scheduled__2026-11-19T00:00:00+00:00/" + "簿" * 250)


@pytest.fixture(scope="module")
def small_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxBroker]:
    """Takes not much more than has to be beside an offset."""
    with SandboxBroker(tmp_path_factory.mktemp("small"), overrides={"offset.metadata.max.bytes": "2100"}) as broker:
        yield broker


def ids(bench: Bench) -> list[int]:
    return sorted(json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output))


def talkative(bootstrap: str, delivery: Delivery) -> Bench:
    bench = Bench.make(bootstrap, delivery=delivery, chunk_records=20, segments=["telling_kit:Tells"])
    fill(bootstrap, bench.topic, numbered(100))
    return bench


def check_a_talkative_run(bench: Bench) -> None:
    plan = bench.plan(run_key=RUN_KEY)
    first = bench.worker(plan)
    first.open()
    first.run_chunk()
    first.run_chunk()
    first.close()

    (progress,) = bench.work(plan)
    checkpoint = bench.checkpoint(plan)

    assert progress.complete
    counts = checkpoint.totals
    assert (counts.read, counts.written, counts.dead_lettered) == (100, 90, 10)
    assert counts.named == dict.fromkeys(telling_kit.NAMES, 90)
    assert sum(each.count for each in counts.causes) == 10
    assert ids(bench) == [number for number in range(100) if number % 10]


@both_deliveries
def test_counters_and_causes_that_do_not_fit_beside_the_offset_are_stored_and_found(
    broker: SandboxBroker, delivery: Delivery
) -> None:
    bench = talkative(broker.bootstrap_servers, delivery)
    check_a_talkative_run(bench)
    found = held(bench.bootstrap, f"{bench.pipeline.group}.kpipe", bench.topic)
    assert found.metadata is not None
    assert len(found.metadata.encode()) <= METADATA_BYTES


def test_a_broker_that_takes_less_gets_less(small_broker: SandboxBroker) -> None:
    bench = talkative(small_broker.bootstrap_servers, "exactly_once")
    plan = bench.plan(run_key=RUN_KEY)
    assert plan.metadata_bytes == 2_100
    bench.work(plan)
    counts = bench.checkpoint(plan).totals
    assert (counts.read, counts.written, counts.dead_lettered) == (100, 90, 10)
    # Of what is told, some counts together with the rest.
    assert sum(counts.named.values()) == 90 * len(telling_kit.NAMES)
    assert sum(each.count for each in counts.causes) == 10


def test_a_plan_says_so_if_the_broker_takes_too_little(tmp_path: Path) -> None:
    with SandboxBroker(tmp_path, overrides={"offset.metadata.max.bytes": "1000"}) as broker:
        bench = Bench.make(broker.bootstrap_servers)
        fill(bench.bootstrap, bench.topic, numbered(10))
        with pytest.raises(PlanError, match=r"offset\.metadata\.max\.bytes is 1000, .* raise it to 2048"):
            bench.plan()


def test_a_worker_names_the_limit_where_the_plan_did_not_know_it(small_broker: SandboxBroker) -> None:
    bench = talkative(small_broker.bootstrap_servers, "exactly_once")
    plan = replace(bench.plan(run_key=RUN_KEY), metadata_bytes=METADATA_BYTES)
    (progress,) = bench.work(plan)
    assert progress.state == "stopped"
    assert "offset.metadata.max.bytes" in (progress.reason or "")


def test_why_records_could_not_pass_is_told_of_all_partitions_and_tries(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2, chunk_records=10, segments=["telling_kit:refuse_some"])
    fill(bench.bootstrap, bench.topic, numbered(80, partitions=2))
    plan = bench.plan()
    first = bench.worker(plan, 0)
    first.open()
    first.run_chunk()
    first.close()
    bench.work(plan, 0)
    bench.work(plan, 1)

    causes = bench.checkpoint(plan).totals.causes

    # Number 10 is the first that is refused, and the sixth of partition 0; number 7 is the fourth of partition 1.
    assert causes == (
        Cause("ValueError", "telling_kit:refuse_some", 8, 0, 0),
        Cause("KeyError", "telling_kit:refuse_some", 8, 1, 3),
    )


@pytest.fixture
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "SHORTEST_PIECE", 10)


def run_half_way(bench: Bench, plan: Plan, chance: random.Random, first: int | None = None) -> None:
    """Each piece of the plan stops somewhere, the first one after so many chunks."""
    planned, job = plan.ranges[0], bench.attempt(plan)
    pieces = [planned.pieces[0], *planned.pieces]
    for task, piece in enumerate(pieces):
        worker = build_worker(job, bench.kafka, [piece], StopSignal(), task)
        worker.open()
        for _ in range(_chunks(piece, chance, first) if task else 0):
            if worker.assignment.unsettled:
                worker.run_chunk()
        worker.close()


def _chunks(piece: PartitionRange, chance: random.Random, first: int | None) -> int:
    return chance.randint(1, 3) if first is None or piece.slot else first


def finish(bench: Bench) -> None:
    """A last run reads what is left."""
    plan = bench.plan(run_key="last")
    job = bench.attempt(plan)
    for task, piece in enumerate((plan.ranges[0].pieces[0], *plan.ranges[0].pieces)):
        worker = build_worker(job, bench.kafka, [piece], StopSignal(), task)
        worker.open()
        if task:
            worker.run_chunks()
            assert worker.assignment[0].progress.complete
        worker.close()
    assert bench.checkpoint(plan).complete


@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize("checkpoints", [True, False], ids=["with checkpoints", "without"])
def test_runs_that_stop_half_way_in_all_their_pieces_never_overflow(broker: SandboxBroker, checkpoints: bool) -> None:
    relaxed = PartitionScaling("relax_ordering_within_partition")
    bench = Bench.make(broker.bootstrap_servers, chunk_records=3, scaling=relaxed)
    chance, total, spans = random.Random(7), 0, []
    for number in range(10):
        fill(bench.bootstrap, bench.topic, numbered(chance.randint(100, 400), start=total))
        total = len(read_all(bench.bootstrap, bench.topic))
        plan = bench.plan(run_key=f"run-{number}")
        spans.append(len(plan.ranges[0].done))
        run_half_way(bench, plan, chance)
        if checkpoints:
            bench.checkpoint(plan)
    finish(bench)

    assert 30 < max(spans) <= most_spans(METADATA_BYTES)
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {0: total}
    assert ids(bench) == list(range(total))


@pytest.mark.usefixtures("short_pieces")
def test_runs_that_were_planned_beside_each_other_stop_before_they_overflow(broker: SandboxBroker) -> None:
    relaxed = PartitionScaling("relax_ordering_within_partition")
    bench = Bench.make(broker.bootstrap_servers, chunk_records=3, scaling=relaxed)
    fill(bench.bootstrap, bench.topic, numbered(300))
    chance, limit = random.Random(7), LEAST_METADATA_BYTES + 20 * SPAN_BYTES
    plans = [replace(bench.plan(run_key=f"run-{number}"), metadata_bytes=limit) for number in range(3)]
    for plan in plans:
        run_half_way(bench, plan, chance)
    written = ids(bench)
    assert "spans of completed offsets" in (bench.checkpoint(plans[-1]).partitions[0].reason or "")
    assert ids(bench) == written

    finish(bench)

    assert ids(bench) == list(range(300))


@pytest.mark.usefixtures("short_pieces")
def test_backfills_that_are_published_half_way_never_overflow(broker: SandboxBroker) -> None:
    relaxed = PartitionScaling("relax_ordering_within_partition")
    bench = Bench.make(broker.bootstrap_servers, chunk_records=3, scaling=relaxed)
    fill(bench.bootstrap, bench.topic, numbered(1_000))
    chance, spans = random.Random(7), []
    for number in range(12):
        # Each begins anew in pieces of its own, and takes the group a little further than the one before it.
        window: dict[str, Any] = {"start": Explicit({0: 0}), "end": Explicit({0: 600 + 30 * number})}
        plan = bench.plan(run_key=f"run-{number}", publish=True, **window)
        run_half_way(bench, plan, chance, first=number + 1)
        bench.checkpoint(plan)
        mark = json.loads(held(bench.bootstrap, bench.pipeline.group, bench.topic).metadata or "")
        spans.append(len(mark["beyond"]))
    finish(bench)

    assert 15 < max(spans) <= most_spans(METADATA_BYTES)
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {0: 1_000}
    assert set(ids(bench)) == set(range(1_000))
