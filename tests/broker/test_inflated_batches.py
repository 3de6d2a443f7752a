"""Batches that inflate to more than a client takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer

from airflow_provider_kpipe.contract.job import KafkaSettings
from airflow_provider_kpipe.exceptions import KpipeError
from airflow_provider_kpipe.sandbox import SandboxBroker
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.wiring import build_worker
from tests.kit.pipelines import Bench
from tests.kit.redrives import dry_run
from tests.kit.topics import read_all

LIMITS = {"receive.message.max.bytes": "3000000", "fetch.max.bytes": "2000000", "message.max.bytes": "2000000"}
PAYLOAD = b"x" * 400_000


def put(bench: Bench, compression: str, *values: bytes, topic: str | None = None) -> None:
    """All in one batch, however slow the machine is: it is sent when it is flushed. A topic that is not known by then
    gets its records one by one."""
    settings = {"compression.type": compression, "linger.ms": 60_000, "batch.size": 50_000_000}
    producer = Producer({**bench.settings, **settings, "message.max.bytes": 50_000_000})
    producer.list_topics(topic or bench.topic, timeout=30)
    for value in values:
        producer.produce(topic or bench.topic, value, partition=0)
    assert producer.flush(30) == 0


def work(bench: Bench, **source: Any) -> Any:
    plan = bench.plan()
    kafka = KafkaSettings({**bench.settings, **LIMITS, **source}, bench.settings)
    (progress,) = build_worker(bench.attempt(plan), kafka, plan.ranges, StopSignal()).run()
    return progress


@pytest.fixture
def bench(request: pytest.FixtureRequest, broker: SandboxBroker) -> Bench:
    """Ten records that a batch of four thousand, one good one and a batch of nine come between."""
    made = Bench.make(broker.bootstrap_servers, source={"on_data_loss": request.param})
    put(made, "none", *(b"before" for _ in range(10)))
    put(made, "zstd", *([PAYLOAD] * 10), *(b"small" for _ in range(4_000)))
    put(made, "none", b"between")
    put(made, "zstd", *([PAYLOAD] * 9))
    put(made, "none", *(b"after" for _ in range(10)))
    return made


@pytest.mark.parametrize("bench", ["stop_partition"], indirect=True)
def test_one_stops_the_partition_behind_what_comes_before_it_and_is_named(bench: Bench) -> None:
    progress = work(bench)
    assert (progress.state, progress.next_offset, progress.counts.written) == ("stopped", 10, 10)
    assert "the batch at offset 10 cannot be decompressed" in progress.reason
    assert "receive.message.max.bytes" in progress.reason
    assert "on_data_loss='skip'" in progress.reason


@pytest.mark.parametrize("bench", ["stop_partition"], indirect=True)
def test_with_the_limit_raised_it_is_read(bench: Bench) -> None:
    progress = work(bench, **{"receive.message.max.bytes": "100000000"})
    assert progress.complete, progress.reason
    assert progress.counts.written == 10 + 4_010 + 1 + 9 + 10


@pytest.mark.parametrize("bench", ["skip"], indirect=True)
def test_its_records_are_passed_over_and_counted_as_lost_and_no_others(bench: Bench) -> None:
    progress = work(bench)
    assert progress.complete, progress.reason
    assert (progress.counts.written, progress.counts.lost) == (21, 4_010 + 9)
    values = [record.value for record in read_all(bench.bootstrap, bench.output)]
    assert values == [b"before"] * 10 + [b"between"] + [b"after"] * 10


def test_one_among_dead_letters_is_named_to_whoever_looks_at_them(broker: SandboxBroker) -> None:
    bench = replace(Bench.make(broker.bootstrap_servers), login=LIMITS)
    put(bench, "zstd", *([PAYLOAD] * 10), topic=bench.dead)
    with pytest.raises(KpipeError, match=r"inflates to more than receive\.message\.max\.bytes: raise that"):
        dry_run(bench)
