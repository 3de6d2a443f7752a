"""Clients connect at once to a broker that is there, and back off from one that is gone."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from kpipe_engine.clients import client_settings

SECONDS = 4.0
# A handful at once, and then one or two a second. It was 80 a second.
MOST_TRIES = 25


class Tries:
    """In the place of a client's log."""

    def __init__(self) -> None:
        self.count = 0

    def log(self, _level: int, _form: str, facility: str, _client: str, text: str) -> None:
        self.count += facility == "CONNECT" and text.endswith("connecting")


@pytest.fixture
def gone() -> Any:
    with SandboxBroker() as running:
        yield running


def test_a_broker_that_is_gone_is_tried_ever_less(gone: SandboxBroker) -> None:
    create_topics(gone.bootstrap_servers, "orders", partitions=1)
    tries = Tries(), Tries()
    settings = [
        {
            **client_settings({"bootstrap.servers": gone.bootstrap_servers, "error_cb": lambda _error: None}),
            "debug": "broker",
            "logger": each,
        }
        for each in tries
    ]
    consumer, producer = Consumer({**settings[0], "group.id": "readers"}), Producer(settings[1])
    consumer.committed([TopicPartition("orders", 0)], timeout=30)
    consumer.assign([TopicPartition("orders", 0, 0)])
    producer.produce("orders", b"x")
    assert producer.flush(30) == 0

    gone.kill()
    for each in tries:
        each.count = 0
    producer.produce("orders", b"y")
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        producer.poll(0.05)
        consumer.consume(10, 0.05)

    assert all(0 < each.count <= MOST_TRIES for each in tries), [each.count for each in tries]
    consumer.close()
    producer.purge()
    producer.flush(0)
