"""Why a partition stopped is stored, also where its worker could not do so in its chunk."""

from __future__ import annotations

import dataclasses
import json

import pytest

from airflow_provider_kpipe import KafkaDestination
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from kpipe_engine.errors import ChunkFailedError, PartitionHaltedError
from tests.kit.pipelines import Bench
from tests.kit.topics import fill, numbered, read_all

DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")
both_deliveries = pytest.mark.parametrize("delivery", DELIVERIES)


def stored(bench: Bench, plan: Plan) -> list[PartitionProgress]:
    """As Airflow's side sees it."""
    with Positions(bench.settings) as positions:
        return positions.progress(plan)


def ids(bench: Bench) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output)]


@both_deliveries
def test_a_destination_that_does_not_exist(broker: SandboxBroker, delivery: Delivery) -> None:
    made = Bench.make(broker.bootstrap_servers, delivery=delivery)
    fill(made.bootstrap, made.topic, numbered(10))
    gone = KafkaDestination(made.output + ".gone")
    bench = dataclasses.replace(made, pipeline=dataclasses.replace(made.pipeline, destination=gone))
    plan = bench.plan()
    (progress,) = bench.work(plan)

    (found,) = stored(bench, plan)

    assert (found.state, found.next_offset, found.reason) == ("stopped", 0, progress.reason)
    assert ".gone' cannot be written to" in (found.reason or "")
    assert bench.checkpoint(plan).partitions[0].reason == progress.reason
    # The next try goes on.
    create_topics(bench.bootstrap, gone.topic)
    assert [each.complete for each in bench.work(plan)] == [True]
    assert (ids(bench), stored(bench, plan)[0].reason) == (list(range(10)), None)


@both_deliveries
def test_a_chunk_that_fails_again_and_again(
    broker: SandboxBroker, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(30))
    plan = bench.plan()
    worker = bench.worker(plan)
    run_chunk = worker.run_chunk

    def run_one() -> None:
        if worker.assignment[0].stored:
            raise ChunkFailedError("the broker is in a bad mood")
        run_chunk()

    monkeypatch.setattr(worker, "run_chunk", run_one)
    (progress,) = worker.run()

    (found,) = stored(bench, plan)
    assert (found.state, found.next_offset, found.counts.read, found.reason) == ("stopped", 10, 10, progress.reason)
    assert "failed 5 times, the last time with: the broker is in a bad mood" in (found.reason or "")
    assert bench.plan("next").ranges[0].start == 10


def test_a_partition_of_a_newer_run_is_left_alone(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(40, partitions=2))
    older, newer = bench.plan("older"), bench.plan("newer", partitions=[0])
    worker, at_work = bench.worker(older, 0), bench.worker(newer, 0)
    worker.open()
    at_work.open()
    at_work.run_chunk()

    worker.last_words.say(worker.assignment, PartitionHaltedError("the older run's own trouble"))
    worker.close()

    (found,) = stored(bench, newer)
    assert (found.state, found.next_offset, found.counts.read) == ("running", 10, 10)
    at_work.run_chunks()
    at_work.close()
    assert at_work.assignment[0].progress.complete
    assert stored(bench, older)[0].state == "revoked"
    assert len(ids(bench)) == 20
