from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.exceptions import ConnectionSettingsError, KafkaUnavailableError, KpipeError
from airflow_provider_kpipe.kafka import cluster as module
from airflow_provider_kpipe.kafka.cluster import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Cluster
from tests.kit.clock import Clock

Question = Callable[[Any, float], Mapping[str, Future[str]]]


class FakeAdmin:
    """A client that only takes part in polling."""

    def poll(self, seconds: float) -> None:
        """Serve no callback."""


class FakeConsumer:
    """A consumer of a group that can be closed."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.group, self.is_closed = settings["group.id"], False

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(module, "time", fake)
    return fake


@pytest.fixture
def cluster(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster whose clients talk to nobody, and which answers within 10 seconds."""
    monkeypatch.setattr(module, "AdminClient", lambda settings: FakeAdmin())
    monkeypatch.setattr(module, "Consumer", FakeConsumer)
    return Cluster({"bootstrap.servers": "kafka:9092"}, answer_seconds=10)


def answered(**answers: Any) -> dict[str, Future[str]]:
    """Futures that have these results; an error is raised, and None never comes."""
    found: dict[str, Future[str]] = {}
    for name, answer in answers.items():
        found[name] = Future()
        if isinstance(answer, Exception):
            found[name].set_exception(answer)
        elif answer is not None:
            found[name].set_result(answer)
    return found


def error(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


class Asked:
    """A question that gets one set of answers after another, and the clients that it was asked with."""

    def __init__(self, *answers: Mapping[str, Future[str]]) -> None:
        self.left = list(answers)
        self.clients: list[Any] = []
        self.seconds: list[float] = []

    def __call__(self, client: Any, seconds: float) -> Mapping[str, Future[str]]:
        self.clients.append(client)
        self.seconds.append(seconds)
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


def test_all_answers_are_returned_by_what_was_asked(cluster: Cluster) -> None:
    assert cluster.ask_admin(Asked(answered(a="one", b="two")), "about topics") == {"a": "one", "b": "two"}


def test_an_error_that_passes_is_asked_about_again_by_another_client(cluster: Cluster, clock: Clock) -> None:
    down = answered(a=error(KafkaError._TRANSPORT))
    asked = Asked(down, down, answered(a="one"))
    assert cluster.ask_admin(asked, "about topics") == {"a": "one"}
    assert clock.slept == [FIRST_PAUSE_SECONDS, 2 * FIRST_PAUSE_SECONDS]
    assert len({*map(id, asked.clients)}) == 3
    assert asked.seconds == pytest.approx([10, 9.9, 9.7])


def test_an_outage_ends_within_the_bound(cluster: Cluster, clock: Clock) -> None:
    with pytest.raises(KafkaUnavailableError, match=r"at kafka:9092 is unreachable, asked about topics \("):
        cluster.ask_admin(Asked(answered(a=error(KafkaError._TIMED_OUT))), "about topics")
    assert sum(clock.slept) < 10
    assert max(clock.slept) == LONGEST_PAUSE_SECONDS


def test_an_error_that_stays_is_raised_at_once(cluster: Cluster, clock: Clock) -> None:
    refused = Asked(answered(a=error(KafkaError.INVALID_GROUP_ID)))
    with pytest.raises(KpipeError, match="rejected the request about topics"):
        cluster.ask_admin(refused, "about topics")
    assert clock.slept == []


def test_one_error_is_worth_more_than_an_answer_that_is_missing(cluster: Cluster) -> None:
    asked = Asked(answered(a=None, b=error(KafkaError.INVALID_GROUP_ID)))
    with pytest.raises(KpipeError, match="Invalid group"):
        cluster.ask_admin(asked, "about topics")


def test_a_group_keeps_its_consumer_until_it_is_forgotten(cluster: Cluster) -> None:
    def itself(consumer: Any, _: float) -> Any:
        return consumer

    first = cluster.ask_as("billing", itself, "about a group")
    assert first.group == "billing"
    assert cluster.ask_as("billing", itself, "about a group") is first
    assert cluster.ask_as("other", itself, "about a group") is not first
    cluster.forget("billing")
    assert first.is_closed
    assert cluster.ask_as("billing", itself, "about a group") is not first


def test_the_block_closes_all_consumers(cluster: Cluster) -> None:
    with cluster:
        consumer: Any = cluster.ask_as("billing", lambda consumer, _: consumer, "about a group")
    assert consumer.is_closed


@pytest.mark.parametrize(
    ("settings", "address"),
    [({"bootstrap.servers": "a:1,b:2"}, "a:1,b:2"), ({"metadata.broker.list": "c:3"}, "c:3"), ({}, "?")],
)
def test_the_address_is_that_of_the_settings(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], address: str
) -> None:
    monkeypatch.setattr(module, "AdminClient", lambda settings: FakeAdmin())
    assert Cluster(settings).address == address


def test_settings_that_the_client_refuses_are_a_mistake_in_the_connection() -> None:
    with pytest.raises(ConnectionSettingsError, match=r"rejects the settings .*no\.such\.setting.*: fix its extra"):
        Cluster({"bootstrap.servers": "kafka:9092", "no.such.setting": "1"})
