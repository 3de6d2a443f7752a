"""Somebody else's transaction over the source topic that is open when a run is planned, and for long after."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from airflow_provider_kpipe.checkpointing.draining import look
from airflow_provider_kpipe.contract.offsets.limits import Latest
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.redrives import await_committed
from tests.kit.topics import committed, fill, numbered, read_all


def ids(bench: Bench) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output)]


@contextmanager
def hanging(bench: Bench, first: int, many: int) -> Iterator[Producer]:
    producer = Producer({"bootstrap.servers": bench.bootstrap, "transactional.id": f"hanging-{bench.topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for record in numbered(many, start=first):
        producer.produce(bench.topic, record.value, record.key, 0)
    assert producer.flush(30) == 0
    yield producer


@pytest.mark.parametrize("outcome", ["committed", "aborted"])
def test_records_behind_it_wait_for_its_end_and_the_plan_logs_it(
    broker: SandboxBroker, outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    with hanging(bench, 10, 5) as producer:
        fill(bench.bootstrap, bench.topic, numbered(10, start=15))
        plan = bench.plan()
        assert [(each.start, each.end) for each in plan.ranges] == [(0, 10)]
        bench.work(plan)
        assert bench.checkpoint(plan).complete
        # The gate sees the topic as a reader does.
        target = DrainTarget.of(
            Latest(), group=plan.group, topic=bench.topic, isolation_level="read_committed", partitions=None
        )
        assert [(each.target, each.drained) for each in look(bench.settings, target)] == [(10, True)]
        caplog.clear()
        assert bench.plan("run-2").pending == ()
        assert "in partition 0, 15 offsets from 10 on wait for its end" in caplog.text
        if outcome == "committed":
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    await_committed(bench)

    assert [each.drained for each in look(bench.settings, target)] == [False]
    caplog.clear()
    following = bench.plan("run-3")
    assert "wait for its end" not in caplog.text
    bench.work(following)
    checkpoint = bench.checkpoint(following)

    assert checkpoint.complete
    # The marker that ends the transaction has an offset too.
    assert committed(bench.bootstrap, plan.group, bench.topic, 1) == {0: 26}
    assert ids(bench) == [number for number in range(25) if outcome == "committed" or not 10 <= number < 15]


def test_read_uncommitted_takes_what_is_in_it_and_does_not_wait(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, source={"isolation_level": "read_uncommitted"})
    fill(bench.bootstrap, bench.topic, numbered(10))
    with hanging(bench, 10, 5) as producer:
        plan = bench.plan()
        bench.work(plan)
        assert bench.checkpoint(plan).complete
        producer.abort_transaction(30)
    assert committed(bench.bootstrap, plan.group, bench.topic, 1) == {0: 15}
    assert ids(bench) == list(range(15))
