"""A fault that ends a partition in a chunk which comes to nothing has ended nothing: its records were not written."""

from __future__ import annotations

import json
from typing import Any

import faulty_kit
import pytest

from airflow_provider_kpipe import PartitionScaling, RetryPolicy
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.sandbox import SandboxBroker
from kpipe_engine.errors import ChunkFailedError
from kpipe_engine.stop_signal import StopSignal
from tests.kit.pipelines import Bench
from tests.kit.topics import fill, numbered, read_all

both_deliveries = pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])


def ids(bench: Bench) -> list[int]:
    return sorted(json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output))


@both_deliveries
def test_a_fault_while_the_chunk_is_given_up(
    broker: SandboxBroker, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaling = PartitionScaling(rebalance_mode="stop_accepting_new_work_and_yield")
    bench = Bench.make(
        broker.bootstrap_servers,
        delivery=delivery,
        segments=["faulty_kit:fails_at_five"],
        dead_letter=None,
        scaling=scaling,
    )
    fill(bench.bootstrap, bench.topic, numbered(10))
    plan, stop_signal, fails_at_five = bench.plan(), StopSignal(), faulty_kit.fails_at_five

    def stopped_at_five(record: Any) -> Any:
        if json.loads(record.value)["id"] == 5:
            stop_signal.request("somebody stopped the task")
        return fails_at_five(record)

    monkeypatch.setattr(faulty_kit, "fails_at_five", stopped_at_five)
    (given_up,) = bench.work(plan, stop_signal=stop_signal)
    assert (given_up.state, given_up.next_offset) == ("yielded", 0)

    monkeypatch.undo()
    (stopped,) = bench.work(plan)
    assert (stopped.state, stopped.next_offset, stopped.counts.written) == ("stopped", 5, 5)
    # At least once, what was on its way when the chunk was given up may have arrived.
    assert ids(bench) == [0, 1, 2, 3, 4] if delivery == "exactly_once" else set(ids(bench)) == {0, 1, 2, 3, 4}


@both_deliveries
def test_a_fault_beside_another_partition_whose_chunk_fails(
    broker: SandboxBroker, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench.make(
        broker.bootstrap_servers,
        partitions=2,
        delivery=delivery,
        segments=["faulty_kit:fails_at_five"],
        dead_letter=None,
    )
    # The even ones are in partition 0, and the fault is in partition 1.
    fill(bench.bootstrap, bench.topic, numbered(20, partitions=2))
    worker = bench.worker(bench.plan(), 0, 1)
    fail_the_second_store(worker, monkeypatch)

    even, odd = worker.run()

    assert (even.state, even.next_offset) == ("complete", 10)
    assert (odd.state, odd.next_offset, odd.counts.written) == ("stopped", 2, 2)
    found = ids(bench)
    assert set(found) == {*range(0, 20, 2), 1, 3}
    assert len(found) == len(set(found)) or delivery == "at_least_once"


def test_a_partition_that_cannot_be_taken_on_at_once_is_tried_again(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    worker = bench.worker(bench.plan())
    fail_the_second_store(worker, monkeypatch, stores=0)
    (progress,) = worker.run()
    assert progress.complete
    assert ids(bench) == list(range(10))


IN_THREADS = PartitionScaling("relax_ordering_within_partition", max_in_flight_per_partition=4)


@pytest.mark.parametrize(
    ("segment", "scaling"),
    [("flaky", PartitionScaling()), ("flaky", IN_THREADS), ("flaky_awaited", IN_THREADS)],
    ids=["one by one", "threads", "async"],
)
def test_a_record_that_had_passed_has_all_its_tries_again(
    broker: SandboxBroker, segment: str, scaling: PartitionScaling
) -> None:
    # The second record's chunk is redone for the one before it, when it has passed at its third try; then it fails
    # once more, and passes.
    faulty_kit.FLAKY.clear()
    bench = Bench.make(
        broker.bootstrap_servers,
        segments=[f"faulty_kit:{segment}"],
        retry=RetryPolicy.fixed(3, 0.0),
        scaling=scaling,
    )
    fill(bench.bootstrap, bench.topic, numbered(4))
    (progress,) = bench.work(bench.plan())
    assert progress.complete, progress.reason
    dead = [json.loads(letter.value or b"")["id"] for letter in read_all(broker.bootstrap_servers, bench.dead)]
    assert (dead, ids(bench)) == ([1], [0, 2, 3])


def fail_the_second_store(worker: Any, monkeypatch: pytest.MonkeyPatch, stores: int = 1) -> None:
    """The first one is the lease's."""
    store, left = worker.writer.store, [stores]

    def fail_once(positions: list[Any]) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise ChunkFailedError("the broker did not answer")
        store(positions)

    monkeypatch.setattr(worker.writer, "store", fail_once)
