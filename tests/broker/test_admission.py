"""A broker that stands still for 20 seconds: reading pauses, memory stays bounded, and nothing is lost."""

from __future__ import annotations

import ctypes
import json
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orders_kit
import psutil
import pytest

from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, fill, read_all
from tests.kit.workers import Working

RECORDS = 120_000
PAYLOAD = b"x" * 1_500
# A queue that is full, one that is fetched ahead, and what the client keeps around them: less than the topic holds.
MOST_BYTES = 150 * 1024 * 1024
FETCHED_BYTES = 10_000 * len(PAYLOAD)


def resident() -> int:
    return int(psutil.Process().memory_info().rss)


@pytest.fixture
def own_broker() -> Iterator[SandboxBroker]:
    with SandboxBroker() as running:
        yield running


@pytest.mark.parametrize(("delivery", "standstill_seconds"), [("exactly_once", 20), ("at_least_once", 8)])
def test_reading_pauses_and_resumes(
    own_broker: SandboxBroker, delivery: Delivery, standstill_seconds: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kpipe.events")
    bench = Bench.make(
        own_broker.bootstrap_servers, delivery=delivery, chunk_seconds=600.0, segments=["orders_kit:behind_the_gate"]
    )
    fill(bench.bootstrap, bench.topic, [Sent(PAYLOAD, str(number).encode()) for number in range(RECORDS)])
    settings: dict[str, Any] = {"queue.buffering.max.messages": "2000"}
    working = Working(bench.worker(bench.plan(), **settings))
    # What tests before this one have freed would be used again, and not be seen as growth.
    ctypes.CDLL(None).malloc_trim(0)
    before = resident()
    orders_kit.GATE.clear()
    working.start()
    # As long as none is handled, memory grows by what is fetched: more than the producer takes.
    wait_for(lambda: resident() - before > FETCHED_BYTES or not working.is_alive(), "fetched records")

    own_broker.pause()
    orders_kit.GATE.set()
    highest = 0
    for _ in range(standstill_seconds * 2):
        working.join(0.5)
        highest = max(highest, resident() - before)
    own_broker.resume()
    working.join(120)

    (progress,) = working.progress
    assert progress.complete, progress.reason
    assert highest < MOST_BYTES
    events = [json.loads(record.getMessage())["event"] for record in caplog.records if record.name == "kpipe.events"]
    assert "paused" in events
    assert events.index("resumed") > events.index("paused")
    assert events.count("resumed") == events.count("paused")
    times = Counter(record.key for record in read_all(bench.bootstrap, bench.output))
    assert len(times) == RECORDS
    if delivery == "exactly_once":
        assert set(times.values()) == {1}


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_record_that_is_larger_than_the_queue_was_to_be_is_written(broker: SandboxBroker, delivery: Delivery) -> None:
    # As a task does whose partitions share what one of them may take for its queue.
    settings: dict[str, Any] = {"queue.buffering.max.kbytes": "200", "message.max.bytes": "1000000"}
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery)
    fill(bench.bootstrap, bench.topic, [Sent(b"before"), Sent(b"x" * 900_000), Sent(b"after")])
    working = Working(bench.worker(bench.plan(), **settings))
    working.daemon = True
    working.start()
    working.join(60)
    assert not working.is_alive()
    (progress,) = working.progress
    assert progress.complete, progress.reason
    assert [len(record.value or b"") for record in read_all(bench.bootstrap, bench.output)] == [6, 900_000, 5]
