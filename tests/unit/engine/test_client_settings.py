from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.pipeline.declaration import (
    TRANSACTION_PER_CHUNK,
    KafkaDestination,
    KafkaPipeline,
    KafkaSource,
)
from kpipe_engine.client_settings import (
    QUEUE_KBYTES,
    SHORTEST_TRANSACTION_TIMEOUT_MS,
    consumer_settings,
    producer_settings,
    transaction_timeout_ms,
)
from tests.kit.plans import plan_of

PIPELINE = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"))
PLAN = plan_of(isolation_level="read_uncommitted")
OWN_OF_CONSUMER = {
    "isolation.level": "read_committed",
    "enable.auto.commit": "true",
    "enable.auto.offset.store": "true",
    "auto.offset.reset": "earliest",
    "group.id": "mine",
}
OWN_OF_PRODUCER = {"acks": "1", "enable.idempotence": "false", "partitioner": "random", "compression.type": "none"}


def test_the_connection_may_tune_the_consumer() -> None:
    made = consumer_settings({"fetch.wait.max.ms": "100", "sasl.username": "me"}, PLAN, 0)
    assert (made["fetch.wait.max.ms"], made["sasl.username"]) == ("100", "me")


@pytest.mark.parametrize("slot", [0, 2])
def test_the_connection_cannot_change_what_the_consumer_reads_and_stores(slot: int) -> None:
    made = consumer_settings(OWN_OF_CONSUMER, PLAN, slot)
    assert {name: made[name] for name in OWN_OF_CONSUMER} == {
        "isolation.level": "read_uncommitted",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "group.id": PLAN.progress_group(slot),
    }


def test_the_connection_may_tune_the_producer() -> None:
    made = producer_settings({"linger.ms": "5", "batch.size": "9"}, PIPELINE.destination)
    assert (made["linger.ms"], made["batch.size"]) == ("5", "9")


def test_the_connection_cannot_make_the_producer_lose_or_repeat_a_record() -> None:
    made = producer_settings(OWN_OF_PRODUCER, KafkaDestination("out", partitioner="murmur2", compression="zstd"))
    assert {name: made[name] for name in OWN_OF_PRODUCER} == {
        "acks": "all",
        "enable.idempotence": True,
        "partitioner": "murmur2",
        "compression.type": "zstd",
    }


@pytest.mark.parametrize(
    ("settings", "kbytes"),
    [
        ({}, QUEUE_KBYTES),
        ({"queue.buffering.max.kbytes": "100"}, 100),
        ({"queue.buffering.max.kbytes": "100", "message.max.bytes": str(300 * 1024)}, 301),
    ],
)
def test_the_queue_holds_the_largest_record(settings: dict[str, Any], kbytes: int) -> None:
    assert producer_settings(settings, PIPELINE.destination)["queue.buffering.max.kbytes"] == kbytes


def test_a_transaction_outlasts_its_chunk() -> None:
    assert transaction_timeout_ms(replace(PIPELINE, chunk_seconds=0.5)) == SHORTEST_TRANSACTION_TIMEOUT_MS
    longest = SHORTEST_TRANSACTION_TIMEOUT_MS / 1000
    assert transaction_timeout_ms(replace(PIPELINE, chunk_seconds=longest)) == longest * 1000 * TRANSACTION_PER_CHUNK


def test_a_transaction_may_be_declared_shorter() -> None:
    assert transaction_timeout_ms(replace(PIPELINE, chunk_seconds=0.5, transaction_seconds=2.5)) == 2_500
