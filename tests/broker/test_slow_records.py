"""A record whose segment takes longer than a transaction lasts."""

from __future__ import annotations

import json
from typing import Any

import pytest
import slow_kit
from confluent_kafka import KafkaError, KafkaException
from pipelines import Bench
from topics import fill, numbered, read_all

from airflow_provider_kpipe.sandbox import SandboxBroker

RECORDS = 12
SPEC: dict[str, Any] = {"segments": ["slow_kit:slow_in_the_middle"], "chunk_seconds": 1.0, "transaction_seconds": 2.0}


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    # The broker looks for transactions that have timed out every ten seconds, by default.
    monkeypatch.setattr(slow_kit, "SECONDS", 14.0)


@pytest.mark.usefixtures("slow")
def test_it_is_alone_in_its_chunk_after_one_failure_and_passes(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench.make(broker.bootstrap_servers, **SPEC)
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    (progress,) = bench.work(bench.plan())
    assert progress.complete, progress.reason
    found = [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output)]
    assert found == list(range(RECORDS))
    assert (progress.counts.written, progress.counts.dead_lettered) == (RECORDS, 0)
    assert sum("try 1 of 5 failed" in record.getMessage() for record in caplog.records) == 1
    assert not any("try 2 of 5" in record.getMessage() for record in caplog.records)


def test_where_its_own_chunk_comes_to_nothing_too_it_faults(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_kit, "SECONDS", 2.5)
    bench = Bench.make(broker.bootstrap_servers, **SPEC)
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    worker = bench.worker(bench.plan())
    store = worker.delivery.store

    def fail_if_slow(positions: list[Any]) -> None:
        if worker.call_seconds > worker.delivery.longest:
            raise KafkaException(KafkaError(KafkaError._STATE))
        store(positions)

    monkeypatch.setattr(worker.delivery, "store", fail_if_slow)
    (progress,) = worker.run()
    assert progress.complete, progress.reason
    assert (progress.counts.written, progress.counts.dead_lettered) == (RECORDS - 1, 1)
    (letter,) = read_all(bench.bootstrap, bench.dead)
    assert json.loads(letter.value or b"")["id"] == slow_kit.SLOW
    said = " ".join(value.decode() for _, value in letter.headers if value)
    assert "a transaction lasts 2 s" in said
    assert "raise transaction_seconds" in said
