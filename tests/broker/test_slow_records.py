"""A record whose segment takes longer than a transaction lasts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import slow_kit
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.sandbox import SandboxBroker
from kpipe_engine import chunk_filler
from kpipe_engine.writing import chunk_writer as delivery
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.topics import are_held_back, fill, numbered, read_all

RECORDS = 12
TRANSACTION_SECONDS = 2
RELAXED = PartitionScaling("relax_ordering_within_partition", max_in_flight_per_partition=4)
KINDS: dict[str, dict[str, Any]] = {
    "in order": {"segments": ["slow_kit:slow_in_the_middle"]},
    "threads": {"segments": ["slow_kit:slow_in_the_middle"], "scaling": RELAXED},
    "async": {"segments": ["slow_kit:slow_in_the_middle_awaited"], "scaling": RELAXED},
    "batch": {"segments": ["slow_kit:slow_in_the_middle_of_a_batch"]},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def broker() -> Iterator[SandboxBroker]:
    """One that soon sees which transactions have timed out."""
    with SandboxBroker(overrides={"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}) as running:
        yield running


@pytest.fixture(autouse=True)
def short_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "transaction_timeout_ms", lambda _pipeline: TRANSACTION_SECONDS * 1000)
    # Where records are handled together, what is read first is written before the slow one is called for.
    monkeypatch.setattr(chunk_filler, "RECORDS_PER_READ", 4)


def ids(bench: Bench, topic: str) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, topic)]


@every_kind
def test_it_is_alone_in_its_chunk_after_one_failure_and_passes(
    broker: SandboxBroker, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench.make(broker.bootstrap_servers, chunk_seconds=600.0, **KINDS[kind])
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    pauses = []

    def outlive_a_transaction() -> None:
        pauses.append(time.monotonic())
        if len(pauses) == 1:
            wait_for(lambda: are_held_back(bench.bootstrap, bench.output), "a transaction")
            wait_for(lambda: not are_held_back(bench.bootstrap, bench.output), "its end")
        else:
            time.sleep(TRANSACTION_SECONDS + 0.5)

    monkeypatch.setattr(slow_kit, "pause", outlive_a_transaction)
    (progress,) = bench.work(bench.plan())

    assert progress.complete, progress.reason
    assert (progress.counts.written, progress.counts.dead_lettered) == (RECORDS, 0)
    assert ids(bench, bench.output) == list(range(RECORDS))
    assert len(pauses) == 2
    assert sum("try 1 of 5 failed" in record.getMessage() for record in caplog.records) == 1
    assert not any("try 2 of 5" in record.getMessage() for record in caplog.records)


@every_kind
def test_a_record_whose_own_chunk_fails_too_faults(
    broker: SandboxBroker, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_kit, "pause", lambda: time.sleep(TRANSACTION_SECONDS + 0.5))
    bench = Bench.make(broker.bootstrap_servers, chunk_seconds=600.0, **KINDS[kind])
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    worker = bench.worker(bench.plan())
    store = worker.writer.store

    def fail_if_slow(positions: Any) -> None:
        if worker.suspects.slowest_seconds > worker.writer.longest:
            raise KafkaException(KafkaError(KafkaError._STATE))
        store(positions)

    monkeypatch.setattr(worker.writer, "store", fail_if_slow)
    (progress,) = worker.run()

    assert progress.complete, progress.reason
    assert (progress.counts.written, progress.counts.dead_lettered) == (RECORDS - 1, 1)
    assert ids(bench, bench.output) == [each for each in range(RECORDS) if each != slow_kit.SLOW]
    (letter,) = read_all(bench.bootstrap, bench.dead)
    assert json.loads(letter.value or b"")["id"] == slow_kit.SLOW
    said = letter.header("kpipe-fault-message")
    assert "alone in its chunk" in said
    assert "a transaction lasts 2 s" in said
    assert "raise transaction_seconds" in said
