from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from kpipe_engine.reading import lone_fetch as module
from kpipe_engine.reading.lone_fetch import FETCH_SECONDS, fetch_alone

RECORDS = [f"record {offset}" for offset in range(13)]
START = TopicPartition("orders", 3, 10)


class Client:
    """Gives out records from where it is put, once it knows who leads the partition and was looked at so often."""

    def __init__(self, settings: dict[str, Any], looks: int) -> None:
        self.settings, self.looks = settings, looks
        self.knows_leader = self.is_closed = False

    def assign(self, places: Sequence[TopicPartition]) -> None:
        (self.place,) = places

    def assignment(self) -> list[TopicPartition]:
        return [self.place]

    def list_topics(self, topic: str, timeout: float) -> None:
        self.knows_leader = topic == self.place.topic

    def consume(self, most: int, timeout: float) -> list[str]:
        assert not self.is_closed
        assert timeout == 0
        self.looks -= 1
        is_fetched = self.knows_leader and self.looks <= 0
        return RECORDS[self.place.offset :][:most] if is_fetched else []

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    """Those that were opened. Each finds its records at the third look."""
    opened: list[Client] = []

    def make(settings: dict[str, Any]) -> Client:
        opened.append(Client(settings, looks=3))
        return opened[-1]

    monkeypatch.setattr(module, "Consumer", make)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0)
    return opened


@pytest.mark.parametrize(("most", "found"), [(5, ["record 10", "record 11", "record 12"]), (1, ["record 10"])])
def test_the_client_that_has_fetched_is_closed_when_its_messages_are_given_out(
    clients: list[Client], most: int, found: list[str]
) -> None:
    given: list[Any] = fetch_alone({}, START, most)
    assert given == found
    (client,) = clients
    assert client.is_closed
    assert (client.settings["queued.min.messages"], client.settings["fetch.queue.backoff.ms"]) == (1, 1_000)


@pytest.mark.parametrize(
    ("settings", "most", "expected"),
    [
        ({"queued.min.messages": 20_000}, 1, 1),
        ({}, 31, 30_721),
        ({"fetch.message.max.bytes": "5000"}, 31, 5_000),
        ({"max.partition.fetch.bytes": 2_000}, 1_000, 2_000),
    ],
)
def test_as_little_is_fetched_as_is_asked_for_and_for_one_record_one_batch(
    clients: list[Client], settings: dict[str, Any], most: int, expected: int
) -> None:
    fetch_alone(settings, START, most)
    found = clients[0].settings
    assert (found["fetch.message.max.bytes"], found["max.partition.fetch.bytes"]) == (expected, expected)
    assert found["queued.min.messages"] == 1


def test_a_fetch_without_records_lets_the_worker_look_around(
    clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 1.0, FETCH_SECONDS])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock, FETCH_SECONDS))
    monkeypatch.setattr(Client, "consume", lambda client, most, timeout: [])
    assert fetch_alone({}, START, 1) == []
    assert clients[0].is_closed


def test_a_failed_fetch_closes_its_client_too(clients: list[Client], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(client: Client, topic: str, timeout: float) -> None:
        raise ValueError(topic)

    monkeypatch.setattr(Client, "list_topics", refuse)
    with pytest.raises(ValueError, match="orders"):
        fetch_alone({}, START, 1)
    assert clients[0].is_closed
