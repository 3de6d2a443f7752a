"""Two runs over the same partition: the newer one has it, and nothing is there twice."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import orders_kit
import pytest
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.contract.kafka_names import sequence_group_of
from airflow_provider_kpipe.contract.offsets.limits import Explicit
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.topics import commit, committed, fill, numbered, read_all
from tests.kit.workers import Working

DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")
both_deliveries = pytest.mark.parametrize("delivery", DELIVERIES)


def ids(bench: Bench) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output)]


@both_deliveries
def test_the_newer_run_goes_on_from_where_the_older_one_stands(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(60))
    older, newer = bench.plan("older"), bench.plan("newer")
    first = bench.worker(older)
    first.open()
    # After both plans were made, and before the newer run starts.
    first.run_chunk()
    first.run_chunk()

    (second,) = bench.work(newer)
    first.run_chunks()
    first.close()

    assert second.complete
    assert (second.took_over, second.counts.read) == ("older", 40)
    revoked = first.assignment[0].progress
    assert (revoked.state, revoked.reason) == ("revoked", "run newer took the partition over")
    if delivery == "exactly_once":
        assert ids(bench) == list(range(60))
    else:
        assert set(ids(bench)) == set(range(60))


@both_deliveries
def test_an_older_run_that_comes_late_leaves_the_newer_one_alone(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(60))
    older, newer = bench.plan("older"), bench.plan("newer")
    second = bench.worker(newer)
    second.open()
    second.run_chunk()

    (first,) = bench.work(older)
    # It was fenced by the late one's opening, and is the rightful owner all the same.
    second.run_chunks()
    second.close()

    assert (first.state, first.counts.read) == ("revoked", 0)
    assert second.assignment[0].progress.complete
    assert sorted(ids(bench)) == list(range(60))


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_two_runs_at_the_same_time_come_to_terms(
    broker: SandboxBroker, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older one notices in the middle of a chunk, when a record of it is refused, and must not fence in turn."""
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, segments=["orders_kit:slowly"], chunk_seconds=0.5)
    fill(bench.bootstrap, bench.topic, numbered(600))
    older, newer = bench.plan("older"), bench.plan("newer")
    quick: dict[str, Any] = {"linger.ms": "5"}
    first, second = (Working(bench.worker(plan, **quick)) for plan in (older, newer))

    def slowly(record: Any) -> Any:
        time.sleep(0.01)
        # The older one is still at work when the newer one has begun, however long that takes.
        if record.key == b"599" and threading.current_thread() is first:
            wait_for(lambda: second.worker.assignment[0].stored > 0, "a chunk of the newer run")
        return record

    monkeypatch.setattr(orders_kit, "slowly", slowly)
    first.start()
    wait_for(lambda: first.worker.assignment[0].stored > 0, "a chunk of the older run")

    second.start()
    first.join(120)
    second.join(120)

    assert (first.progress[0].state, first.progress[0].reason) == ("revoked", "run newer took the partition over")
    assert second.progress[0].complete, second.progress[0].reason
    assert set(ids(bench)) == set(range(600))
    if delivery == "exactly_once":
        assert len(ids(bench)) == 600


def test_both_outcomes_are_in_the_checkpoints(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(60, partitions=2))
    older, newer = bench.plan("older"), bench.plan("newer")
    bench.work(older, 0)

    bench.work(newer)

    refused = bench.checkpoint(older)
    assert [(each.committed, each.complete, each.reason) for each in refused.partitions] == [
        (None, False, "run newer took the partition over")
    ] * 2
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 2) == {}
    assert bench.checkpoint(newer).complete
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 2) == {0: 30, 1: 30}
    assert not bench.checkpoint(older).complete
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 2) == {0: 30, 1: 30}
    assert sorted(ids(bench)) == list(range(60))


def test_a_run_that_took_over_may_publish_behind_the_one_it_took_over_from(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(30))
    older = bench.plan("older")
    fill(bench.bootstrap, bench.topic, numbered(30, start=30))
    newer = bench.plan("newer")
    bench.work(older)
    assert bench.checkpoint(older).complete

    (progress,) = bench.work(newer)

    assert (progress.took_over, progress.counts.read) == ("older", 30)
    assert bench.checkpoint(newer).complete
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {0: 60}
    assert ids(bench) == list(range(60))
    # And had its checkpoint never come, the next plan would go on from there.
    assert bench.plan(run_key="next").ranges[0].start == 60


def test_a_run_planned_between_the_last_store_of_another_and_its_checkpoint(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(30))
    older = bench.plan("older")
    bench.work(older)
    fill(bench.bootstrap, bench.topic, numbered(30, start=30))
    newer = bench.plan("newer")
    assert (newer.ranges[0].start, newer.ranges[0].committed) == (30, None)
    assert bench.checkpoint(older).complete

    (progress,) = bench.work(newer)

    assert (progress.took_over, progress.counts.read) == ("older", 30)
    assert bench.checkpoint(newer).complete
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {0: 60}
    assert ids(bench) == list(range(60))


def test_a_run_that_has_the_key_of_one_before_does_not_take_its_progress_for_its_own(broker: SandboxBroker) -> None:
    """A DAG run is deleted and triggered again, once for other offsets, and once after the group was reset."""
    bench = Bench.make(broker.bootstrap_servers, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(60))
    bench.work(bench.plan("once", start=Explicit({0: 30}), end=Explicit({0: 60})))
    (again,) = bench.work(bench.plan("once", start=Explicit({0: 0}), end=Explicit({0: 20})))
    assert (again.counts.read, ids(bench)) == (20, [*range(30, 60), *range(20)])

    first = bench.plan("live")
    bench.work(first)
    bench.checkpoint(first)
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 0})
    anew = bench.plan("live")
    assert bench.work(anew)[0].counts.read == 60
    assert bench.checkpoint(anew).complete


def test_a_run_goes_on_where_the_counter_of_its_attempts_was_lost(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(40))
    plan = bench.plan()
    for _ in range(2):
        killed = bench.worker(plan)
        killed.open()
        killed.run_chunk()
        killed.close()
    admin, counter = AdminClient(bench.settings), sequence_group_of(bench.pipeline.group)
    admin.delete_consumer_groups([counter])[counter].result(30)

    (progress,) = bench.work(plan)

    assert progress.complete
    assert bench.checkpoint(plan).complete
    assert ids(bench) == list(range(40))


def test_a_partition_that_was_never_begun_does_not_keep_the_others_from_being_published(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(40, partitions=2))
    older = bench.plan("older")
    fill(bench.bootstrap, bench.topic, numbered(40, partitions=2, start=40))
    newer = bench.plan("newer")
    # After both plans were made, the older run moves both partitions.
    bench.work(older)
    assert bench.checkpoint(older).complete

    # The newer run is killed before it comes to partition 1.
    bench.work(newer, 0)
    checkpoint = bench.checkpoint(newer)

    assert [(each.committed, each.complete) for each in checkpoint.partitions] == [(40, True), (20, False)]
    bench.work(newer, 1)
    assert bench.checkpoint(newer).complete
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 2) == {0: 40, 1: 40}
    assert sorted(ids(bench)) == list(range(80))


@pytest.mark.parametrize("plan_first", [True, False])
def test_a_checkpoint_that_comes_while_its_run_is_still_at_work(broker: SandboxBroker, plan_first: bool) -> None:
    bench = Bench.make(broker.bootstrap_servers, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(60))
    older = bench.plan("older")
    worker = bench.worker(older)
    worker.open()
    worker.run_chunk()
    assert not bench.checkpoint(older).complete
    newer = bench.plan("newer") if plan_first else None
    worker.run_chunk()
    worker.close()

    newer = newer or bench.plan("newer")
    assert newer.ranges[0].start == (10 if plan_first else 20)
    bench.work(newer)

    assert ids(bench) == list(range(60))
    assert bench.checkpoint(newer).complete
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {0: 60}


def test_a_group_that_is_reset_to_where_the_last_run_began_is_read_again(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    for number, run_key in enumerate(("first", "second")):
        fill(bench.bootstrap, bench.topic, numbered(10, start=10 * number))
        plan = bench.plan(run_key)
        bench.work(plan)
        assert bench.checkpoint(plan).complete
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 10})

    third = bench.plan("third")
    (progress,) = bench.work(third)

    assert (third.ranges[0].start, progress.counts.read, progress.took_over) == (10, 10, None)
    assert ids(bench) == [*range(20), *range(10, 20)]
