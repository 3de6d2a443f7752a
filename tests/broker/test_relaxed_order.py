"""Several records of one partition at once: faster, and as safe as one after another."""

from __future__ import annotations

import json

import pytest
import waiting_kit

from airflow_provider_kpipe import PartitionScaling, RetryPolicy
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.topics import committed, fill, numbered, read_all

DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")
both_deliveries = pytest.mark.parametrize("delivery", DELIVERIES)
both_kinds = pytest.mark.parametrize("segment", ["waiting_kit:Waits", "waiting_kit:WaitsAsync"])
RELAXED = PartitionScaling("relax_ordering_within_partition", max_in_flight_per_partition=8)


def ids(bench: Bench, topic: str) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, topic)]


@both_deliveries
@both_kinds
def test_records_overtake_each_other_and_none_is_lost(broker: SandboxBroker, delivery: Delivery, segment: str) -> None:
    waiting_kit.forget()
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, segments=[segment], scaling=RELAXED)
    fill(bench.bootstrap, bench.topic, numbered(500))

    (progress,) = bench.work(bench.plan())

    assert progress.complete
    assert (progress.counts.read, progress.counts.written, progress.counts.dead_lettered) == (500, 450, 50)
    # A counter is exact, whoever counts at the same time.
    assert progress.counts.named == {"processed": 500}
    assert 2 <= waiting_kit.most_at_work <= 8
    assert sorted(ids(bench, bench.output)) == [number for number in range(500) if number % 10 != 3]
    assert sorted(ids(bench, bench.dead)) == list(range(3, 500, 10))


@both_kinds
def test_one_in_flight_is_one_after_another(broker: SandboxBroker, segment: str) -> None:
    waiting_kit.forget()
    bench = Bench.make(broker.bootstrap_servers, segments=[segment])
    fill(bench.bootstrap, bench.topic, numbered(60))

    bench.work(bench.plan())

    assert waiting_kit.most_at_work == 1
    assert ids(bench, bench.output) == [number for number in range(60) if number % 10 != 3]


@both_deliveries
@both_kinds
def test_the_stored_offset_does_not_pass_the_first_record_that_is_not_terminal(
    broker: SandboxBroker, delivery: Delivery, segment: str
) -> None:
    bench = Bench.make(
        broker.bootstrap_servers,
        delivery=delivery,
        segments=[segment],
        scaling=RELAXED,
        dead_letter=None,
        # 3 is processed and stopped at, 4 to 11 are at work beside it.
        on_fault="stop_partition",
    )
    fill(bench.bootstrap, bench.topic, numbered(100))

    (progress,) = bench.work(bench.plan())

    assert (progress.state, progress.next_offset, progress.counts.written) == ("stopped", 3, 3)
    assert committed(bench.bootstrap, f"{bench.pipeline.group}.kpipe", bench.topic, 1) == {0: 3}
    assert ids(bench, bench.output) == [0, 1, 2]


@both_deliveries
@both_kinds
def test_a_record_that_waits_for_its_next_try_is_not_overtaken_by_what_is_stored(
    broker: SandboxBroker, delivery: Delivery, segment: str
) -> None:
    bench = Bench.make(
        broker.bootstrap_servers,
        delivery=delivery,
        segments=[segment],
        scaling=RELAXED,
        retry=RetryPolicy.fixed(2, 0.5),
        chunk_seconds=0.2,
    )
    fill(bench.bootstrap, bench.topic, numbered(40))

    (progress,) = bench.work(bench.plan())

    assert (progress.counts.read, progress.counts.written, progress.counts.dead_lettered) == (40, 36, 4)
    assert progress.counts.retried == 4
    assert ids(bench, bench.output) == [number for number in range(40) if number % 10 != 3]
    assert ids(bench, bench.dead) == [3, 13, 23, 33]
    assert {record.header("kpipe-fault-attempts") for record in read_all(bench.bootstrap, bench.dead)} == {"2"}


def test_an_async_segment_among_others_is_awaited(broker: SandboxBroker) -> None:
    bench = Bench.make(
        broker.bootstrap_servers,
        segments=["orders_kit:only_even", "waiting_kit:briefly", "orders_kit:twice", "orders_kit:Opened"],
    )
    fill(bench.bootstrap, bench.topic, numbered(10))

    (progress,) = bench.work(bench.plan())

    assert (progress.counts.read, progress.counts.written, progress.counts.filtered) == (10, 10, 5)
    assert ids(bench, bench.output) == [0, 0, 2, 2, 4, 4, 6, 6, 8, 8]
