"""A record that is larger than what one of many partitions in a task may take for its queue."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.kafka.topic_limits import fit_to_topics
from airflow_provider_kpipe.running.stop_requests import request_stop
from airflow_provider_kpipe.sandbox import SandboxBroker
from kpipe_engine.client_settings import QUEUE_KBYTES
from kpipe_engine.supervision.task_layout import MOST_AT_ONCE_IN_A_TASK as PARTITIONS
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.tasks import work_in_task
from tests.kit.topics import Seen, Sent, fill, read_all

LIMIT = 10_000_000
LARGE = b"x" * 8_000_000
INTERLEAVED = PartitionScaling("parallelize_across_partitions")


@pytest.fixture(scope="module")
def broker() -> Iterator[SandboxBroker]:
    """One whose topics take so large a record."""
    with SandboxBroker(overrides={"message.max.bytes": str(LIMIT)}) as running:
        yield running


def make(broker: SandboxBroker, **spec: Any) -> Bench:
    """With a producer that is fitted to its topics, as the run task does."""
    assert len(LARGE) > QUEUE_KBYTES * 1024 / PARTITIONS
    bench = Bench.make(broker.bootstrap_servers, partitions=PARTITIONS, scaling=INTERLEAVED, **spec)
    return replace(bench, written_login=fit_to_topics(bench.settings, [bench.output, bench.dead]))


def fill_each(bench: Bench, *values: bytes) -> None:
    records = [Sent(value, partition=partition) for value in values for partition in range(PARTITIONS)]
    fill(bench.bootstrap, bench.topic, records, **{"message.max.bytes": LIMIT})


def of_partition(found: list[Seen], partition: int) -> list[bytes | None]:
    return [each.value for each in found if each.partition == partition]


@pytest.mark.parametrize("segments", [[], ["orders_kit:untouched"]], ids=["copy", "segment"])
def test_all_partitions_of_a_task_write_theirs_among_small_ones(broker: SandboxBroker, segments: list[str]) -> None:
    bench = make(broker, segments=segments, destination={"keep_partition": True})
    values = [*[b"before"] * 20, LARGE, *[b"after"] * 20]
    fill_each(bench, *values)

    done, said = work_in_task(bench, bench.plan(), at_once=PARTITIONS)

    assert [each["state"] for each in done] == ["complete"] * PARTITIONS, said
    found = read_all(bench.bootstrap, bench.output)
    for partition in range(PARTITIONS):
        assert of_partition(found, partition) == values
    assert read_all(bench.bootstrap, bench.dead) == []


def test_a_stop_is_heard_behind_it(broker: SandboxBroker) -> None:
    bench = make(broker, segments=["slow_kit:slowly"], destination={"keep_partition": True}, chunk_seconds=600.0)
    values = [LARGE, *[b"%d" % number for number in range(1_000)]]
    fill_each(bench, *values)
    plan = bench.plan()
    job = bench.attempt(plan)
    done: list[dict[str, Any]] = []
    working = threading.Thread(
        target=lambda: done.extend(work_in_task(bench, plan, at_once=PARTITIONS, job=job)[0]), daemon=True
    )
    working.start()
    wait_for(lambda: all(sent(bench)), "the large record of each partition")

    request_stop(bench.settings, plan, job.attempt, "somebody stopped the task")
    working.join(60)

    assert not working.is_alive()
    assert {(each["state"], each["reason"]) for each in done} == {("yielded", "somebody stopped the task")}
    assert len(done) == PARTITIONS
    found = read_all(bench.bootstrap, bench.output)
    for each in done:
        assert of_partition(found, each["partition"]) == values[: each["stored"]]


def sent(bench: Bench) -> list[int]:
    """How much of each partition has reached the broker, in transactions that are open."""
    with Positions(bench.settings) as positions:
        latest = positions.latest(positions.topic(bench.output), "read_uncommitted")
    return [latest[partition] for partition in range(PARTITIONS)]
