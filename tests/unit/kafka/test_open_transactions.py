from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.exceptions import HeldUpError, KafkaUnavailableError, KpipeError
from airflow_provider_kpipe.kafka.cluster import Cluster
from airflow_provider_kpipe.kafka.open_transactions import name_what_holds_up

TIMED_OUT, UNSTABLE = KafkaError._TIMED_OUT, KafkaError.UNSTABLE_OFFSET_COMMIT


class Answering:
    """A cluster: `described` is what it says of the group itself, `codes` of each partition's offset."""

    answer_seconds = 30.0

    def __init__(self, codes: dict[int, int | None], described: KpipeError | None = None) -> None:
        self._codes, self._described = codes, described
        self.asked: list[str] = []

    def ask_admin(self, question: Any, about: str, answer_seconds: float) -> dict[str, Any]:
        question(self, answer_seconds)
        if self.asked[-1] == "group" and self._described:
            raise self._described
        answers = [
            SimpleNamespace(partition=partition, error=code and KafkaError(code))
            for partition, code in self._codes.items()
        ]
        return {"orders": SimpleNamespace(topic_partitions=answers)}

    def describe_consumer_groups(self, groups: list[str], request_timeout: float) -> dict[str, Future[Any]]:
        self.asked.append("group")
        return {}

    def list_consumer_group_offsets(
        self, asked: list[Any], require_stable: bool, request_timeout: float
    ) -> dict[str, Future[Any]]:
        assert require_stable
        self.asked.append("offsets")
        return {}


def named(cluster: Answering, code: int = TIMED_OUT) -> str | None:
    failure = KafkaUnavailableError("no answer about group 'orders'")
    failure.__cause__ = KafkaException(KafkaError(code))
    try:
        name_what_holds_up(cast("Cluster", cluster), "orders", "orders.in", [0, 1, 2], failure)
    except HeldUpError as error:
        return str(error)
    return None


def test_the_partitions_and_the_transactional_id_are_named() -> None:
    said = named(Answering({0: None, 1: UNSTABLE, 2: UNSTABLE}))
    assert said is not None
    assert "for partitions 1, 2 of 'orders.in' has not ended within 30 s" in said
    assert "transactional id kpipe/orders/checkpoint;" in said


@pytest.mark.parametrize("error", [None, KafkaError.TOPIC_AUTHORIZATION_FAILED])
def test_a_group_that_nothing_holds_up_was_just_not_read_in_time(error: int | None) -> None:
    assert named(Answering({0: error, 1: None, 2: None})) is None


def test_a_coordinator_that_is_gone_is_not_asked_for_offsets() -> None:
    """The client would crash."""
    cluster = Answering({1: UNSTABLE}, KafkaUnavailableError("gone"))
    assert named(cluster) is None
    assert cluster.asked == ["group"]


def test_a_group_that_is_not_there_yet_is_asked() -> None:
    assert named(Answering({1: UNSTABLE}, KpipeError("GROUP_ID_NOT_FOUND"))) is not None


def test_nobody_is_asked_where_nobody_was_reached() -> None:
    cluster = Answering({1: UNSTABLE})
    assert named(cluster, KafkaError._TRANSPORT) is None
    assert cluster.asked == []
