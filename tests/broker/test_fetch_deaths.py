"""Workers that the client ends while it fetches: a gzip batch inflates to more memory than a worker has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer

from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.tasks import work_in_task
from tests.kit.topics import committed, read_all

GOOD = 20
NEIGHBOURS = range(1_000, 1_100)
MEMORY_MB = 512
MEGABYTE = b"x" * 1_000_000
# The good records come by themselves, and what inflates is fetched while they are handled.
BATCH_BY_BATCH = {"fetch.message.max.bytes": "1"}


def put(bench: Bench, partition: int, *values: bytes, compression: str = "none") -> None:
    """All in one batch: a topic that is not known yet when they are flushed gets its records one by one."""
    whole = {"compression.type": compression, "linger.ms": 60_000, "batch.size": 1_000_000_000}
    sizes = {"message.max.bytes": 1_000_000_000, "queue.buffering.max.kbytes": 2_000_000}
    producer = Producer({**bench.settings, **whole, **sizes})
    producer.list_topics(bench.topic, timeout=60)
    for value in values:
        producer.produce(bench.topic, value, partition=partition)
    assert producer.flush(60) == 0


def put_numbered(bench: Bench, partition: int, numbers: Sequence[int], fates: Mapping[int, str]) -> None:
    put(bench, partition, *(json.dumps({"id": each, "fate": fates.get(each, "")}).encode() for each in numbers))


def work_beside_a_bomb(bench: Bench, fates: Mapping[int, str]) -> tuple[dict[str, Any], list[int]]:
    """Good records, a batch of 700 MB that takes less than one in the log, and a neighbour with the same worker. What
    became of the first partition, and which of its records were written."""
    put_numbered(bench, 0, range(GOOD), fates)
    put(bench, 0, *[MEGABYTE] * 700, compression="gzip")
    put_numbered(bench, 1, NEIGHBOURS, {})

    done, said = work_in_task(bench, bench.plan(), one_block=True)

    stopped, neighbour = sorted(done, key=lambda each: int(each["partition"]))
    assert neighbour["state"] == "complete", said
    # Without what at_least_once has written again.
    written = sorted({json.loads(each.value or b"")["id"] for each in read_all(bench.bootstrap, bench.output)})
    assert written[-len(NEIGHBOURS) :] == list(NEIGHBOURS)
    assert (stopped["state"], stopped["stored"]) == ("stopped", GOOD), said
    assert committed(bench.bootstrap, f"{bench.pipeline.group}.kpipe", bench.topic, 2)[0] == GOOD
    assert "while it fetched the batch at offset 20" in stopped["reason"]
    assert f"worker_memory_mb={MEMORY_MB}" in stopped["reason"]
    return stopped, written[: -len(NEIGHBOURS)]


@pytest.mark.parametrize(
    ("delivery", "login", "fates"),
    [
        ("exactly_once", {}, {}),
        ("at_least_once", BATCH_BY_BATCH, {GOOD - 1: "linger"}),
    ],
    ids=["fetched together", "fetched with a record in hand"],
)
def test_no_record_is_blamed_and_the_partition_stops_by_name_in_front_of_the_batch(
    broker: SandboxBroker, delivery: Delivery, login: Mapping[str, str], fates: Mapping[int, str]
) -> None:
    spec: dict[str, Any] = {"delivery": delivery, "segments": ["deadly_kit:deadly"], "worker_memory_mb": MEMORY_MB}
    bench = replace(Bench.make(broker.bootstrap_servers, 2, **spec), login=login)
    stopped, written = work_beside_a_bomb(bench, fates)
    assert written == list(range(GOOD))
    assert stopped["dead_lettered"] == 0
    assert read_all(bench.bootstrap, bench.dead) == []


def test_a_record_before_it_that_ends_its_worker_is_found_and_no_other(broker: SandboxBroker) -> None:
    culprit = 10
    bench = Bench.make(broker.bootstrap_servers, 2, segments=["deadly_kit:deadly"], worker_memory_mb=MEMORY_MB)
    stopped, written = work_beside_a_bomb(bench, {culprit: "exit"})
    assert written == [each for each in range(GOOD) if each != culprit]
    assert stopped["dead_lettered"] == 1
    (letter,) = read_all(bench.bootstrap, bench.dead)
    assert json.loads(letter.value or b"")["id"] == culprit
    assert letter.header("kpipe-fault-kind") == "crash"
    assert "ended with exit code 3" in letter.header("kpipe-fault-message")


def test_a_batch_that_inflates_to_less_than_the_memory_passes(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["deadly_kit:measured"], worker_memory_mb=MEMORY_MB)
    put(bench, 0, *[MEGABYTE] * 100, compression="gzip")
    (progress,), said = work_in_task(bench, bench.plan())
    assert (progress["state"], progress["written"]) == ("complete", 100), said
    assert {each.value for each in read_all(bench.bootstrap, bench.output)} == {b"1000000"}
    assert "its worker" not in said
