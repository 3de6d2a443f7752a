"""A broker that crashes, or stops answering, in the middle of a range."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pytest

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.contract.job import KafkaSettings, pack
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery, KafkaSource
from airflow_provider_kpipe.planning import ranges as planner
from airflow_provider_kpipe.record import SourceMessage
from airflow_provider_kpipe.sandbox import SandboxBroker
from kpipe_engine.assignment.assignment import Assignment
from kpipe_engine.errors import PartitionHaltedError, is_silence
from kpipe_engine.reading.shared_consumer import SharedConsumer
from kpipe_engine.redrive.ledger import Ledger
from kpipe_engine.supervision.silence import silent_clusters
from kpipe_engine.supervision.spark_task import claim_what_is_cut
from kpipe_engine.writing import chunk_writer as delivery_module
from tests.kit import shorter_bounds
from tests.kit.ends import ended
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.redrives import order
from tests.kit.redrives import worker as redriving_worker
from tests.kit.shorter_bounds import SHORTER
from tests.kit.tasks import work_in_task
from tests.kit.topics import committed, fill, numbered, read_all
from tests.kit.workers import Working

RECORDS = 20_000
DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")
each_trouble = pytest.mark.parametrize("trouble", ["kill", "pause"])


@pytest.fixture
def own_broker() -> Iterator[SandboxBroker]:
    with SandboxBroker() as running:
        yield running


def stored(bench: Bench) -> int:
    return committed(bench.bootstrap, f"{bench.pipeline.group}.kpipe", bench.topic, 1).get(0, 0)


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("trouble", ["crash", "pause"])
def test_it_costs_time_and_nothing_else(
    own_broker: SandboxBroker, delivery: Delivery, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A crash at the wrong moment is waited for: what counts is that the wait ends.
    monkeypatch.setattr(delivery_module, "STORE_SECONDS", 8.0)
    bench = Bench.make(
        own_broker.bootstrap_servers, delivery=delivery, segments=["orders_kit:unhurriedly"], chunk_records=2_000
    )
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    working = Working(bench.worker(bench.plan()))
    working.start()
    wait_for(lambda: stored(bench) > 4_000, "some chunks")

    if trouble == "crash":
        own_broker.kill()
        assert working.is_alive()
        own_broker.start()
    else:
        own_broker.pause()
        assert working.is_alive()
        working.join(5)
        own_broker.resume()
    working.join(120)

    (progress,) = working.progress
    assert progress.complete, progress.reason
    times = Counter(record.key for record in read_all(bench.bootstrap, bench.output))
    assert len(times) == RECORDS
    if delivery == "exactly_once":
        assert set(times.values()) == {1}
        assert progress.counts.written == RECORDS


# One after another in the worst case: the source's silence, the output's, a commit, an opening, two producers and two
# consumers that do not close.
BOUND_SECONDS = 60


@pytest.fixture
def shorten_bounds(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Once the broker is gone: one that has just come up takes longer for its first answers."""

    return partial(shorter_bounds.shorten_bounds, monkeypatch)


@pytest.mark.parametrize("delivery", DELIVERIES)
@each_trouble
def test_a_broker_that_never_comes_back_ends_the_worker(
    own_broker: SandboxBroker, delivery: Delivery, trouble: str, shorten_bounds: Callable[[], None]
) -> None:
    bench = Bench.make(
        own_broker.bootstrap_servers, delivery=delivery, segments=["orders_kit:unhurriedly"], chunk_records=2_000
    )
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    working = Working(bench.worker(bench.plan()))
    working.start()
    wait_for(lambda: stored(bench) > 4_000, "some chunks")

    getattr(own_broker, trouble)()
    shorten_bounds()
    working.join(BOUND_SECONDS)

    assert_stopped_for_silence(working)
    assert 4_000 < working.progress[0].next_offset < RECORDS


def assert_stopped_for_silence(working: Working) -> None:
    assert not working.is_alive()
    (progress,) = working.progress
    assert progress.state == "stopped"
    assert progress.reason
    assert "does not answer" in progress.reason or "did not answer" in progress.reason
    assert "then run again" in progress.reason


def test_partitions_with_one_writer_wait_for_a_silent_broker_once(
    own_broker: SandboxBroker, shorten_bounds: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a connection is closed, the next chunk finds out before it reads anything: here they stay open."""
    bench = Bench.make(own_broker.bootstrap_servers, partitions=4, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(40, partitions=4))
    worker = bench.worker(bench.plan(), *range(4))
    worker.open()
    worker.run_chunk()
    stop, silent = Assignment.stop, []

    def note(assignment: Assignment, why: PartitionHaltedError) -> None:
        silent.append((assignment.current.partition, str(why)))
        stop(assignment, why)

    monkeypatch.setattr(Assignment, "stop", note)
    own_broker.pause()
    shorten_bounds()

    failure = ended("a chunk", worker.run_chunks)

    assert is_silence(failure)
    ((partition, reason),) = silent
    assert partition == 1
    assert "no answer from the broker about offset 0" in reason
    assert ended("closing", worker.close) is None


@each_trouble
@pytest.mark.parametrize("reading", ["the extents of the ledger", "the ledger", "rivals"])
def test_a_broker_that_never_comes_back_ends_the_worker_of_a_redrive(
    own_broker: SandboxBroker,
    trouble: str,
    reading: str,
    shorten_bounds: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before it decides about its first letter, it reads what was redriven before, and letters in other partitions."""
    bench = Bench.make(own_broker.bootstrap_servers, partitions=2, segments=["faulty_kit:fails"])
    fill(bench.bootstrap, bench.topic, numbered(20, partitions=2))
    bench.work(bench.plan())
    for partition in (0, 1):
        redriving_worker(bench, order(bench, f"before-{partition}"), partition).run()
    worker = redriving_worker(bench, order(bench, "redrive"), partition=1)
    gone: list[str] = []

    def leave() -> None:
        if not gone:
            gone.append(trouble)
            getattr(own_broker, trouble)()
            shorten_bounds()

    read, extents = Ledger._read, SharedConsumer.extents

    def read_from_nobody(
        self: Ledger, declared: KafkaSource, ranges: Iterable[PartitionRange] | None
    ) -> Iterator[SourceMessage]:
        if reading == ("the extents of the ledger" if ranges is None else "rivals"):
            leave()
        return read(self, declared, ranges)

    def extents_and_no_more(*asked: Any) -> Iterator[PartitionRange]:
        found = list(extents(*asked))
        assert any(map(len, found))
        if reading == "the ledger":
            leave()
        yield from found

    monkeypatch.setattr(Ledger, "_read", read_from_nobody)
    monkeypatch.setattr(SharedConsumer, "extents", extents_and_no_more)
    working = Working(worker)
    working.start()
    working.join(BOUND_SECONDS)

    assert gone
    assert_stopped_for_silence(working)


@each_trouble
def test_a_broker_that_never_comes_back_ends_the_driver_before_it_cuts_partitions(
    own_broker: SandboxBroker,
    trouble: str,
    shorten_bounds: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planner, "SHORTEST_PIECE", 25)
    relaxed = PartitionScaling("relax_ordering_within_partition")
    bench = Bench.make(own_broker.bootstrap_servers, partitions=2, scaling=relaxed)
    fill(bench.bootstrap, bench.topic, numbered(200, partitions=2))
    job = bench.attempt(bench.plan())
    assert all(planned.cuts for planned in job.plan.pending)
    getattr(own_broker, trouble)()
    shorten_bounds()

    failure = ended("claiming", lambda: claim_what_is_cut(pack(job), pack(bench.kafka)))

    assert "partition 0 is cut into pieces, and could not be taken on: the Kafka cluster does not answer" in str(
        failure
    )
    assert "then run again" in str(failure)


@pytest.mark.parametrize(("trouble", "tasks"), [("kill", 1), ("pause", 5)])
def test_a_task_with_more_blocks_finds_out_twice_that_nobody_is_there(
    own_broker: SandboxBroker, trouble: str, tasks: int
) -> None:
    """Also one task after another in the same worker of Spark's."""
    bench = Bench.make(own_broker.bootstrap_servers, partitions=5)
    fill(bench.bootstrap, bench.topic, numbered(50, partitions=5))
    plan = bench.plan()
    job = bench.attempt(plan)
    getattr(own_broker, trouble)()

    done, said = work_in_task(
        bench, plan, job=job, tasks=tasks, bounds={**SHORTER, "supervision.silence.ASK_SECONDS": 4.0}
    )

    assert [each["state"] for each in done] == ["stopped"] * 5, said
    reasons = [each["reason"] for each in done]
    assert all(reason.startswith("the Kafka cluster does not answer (") for reason in reasons[:2]), reasons
    untried = f"not tried: 2 workers in a row have ended because no broker answers at {bench.bootstrap}; see that "
    assert all(reason.startswith(untried) for reason in reasons[2:]), reasons


def test_a_cluster_that_answers_a_new_client_is_not_silent(broker: SandboxBroker) -> None:
    there, gone = ({"bootstrap.servers": address} for address in (broker.bootstrap_servers, "127.0.0.1:1"))
    assert silent_clusters(KafkaSettings(there, there)) == []
    assert silent_clusters(KafkaSettings(there, gone)) == ["127.0.0.1:1"]
