from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.stop_request import StopRequest, stop_partition_of
from airflow_provider_kpipe.running import stop_requests as module
from airflow_provider_kpipe.running.stop_requests import request_stop
from tests.kit.plans import plan_of

PLAN = plan_of(PartitionRange(3, 0, 10, 0))


class Answer:
    """What a broker says about one partition of a commit."""

    def __init__(self, error: KafkaError | None) -> None:
        self.error = error


class Group:
    """Keeps what is committed to it, unless it refuses to."""

    def __init__(self) -> None:
        self.refusal: KafkaError | None = None
        self.held: dict[tuple[str, int, int], str | None] = {}
        self.is_closed = False

    def commit(self, offsets: Sequence[TopicPartition], asynchronous: bool) -> list[Answer]:
        assert not asynchronous
        if self.refusal is None:
            self.held.update({(each.topic, each.partition, each.offset): each.metadata for each in offsets})
        return [Answer(self.refusal) for _ in offsets]

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    made = Group()

    def consumer(settings: dict[str, Any]) -> Group:
        assert settings["group.id"] == "orders.kpipe.stop"
        return made

    monkeypatch.setattr(module, "Consumer", consumer)
    return made


def test_a_request_says_which_attempt_is_to_stop_and_why(group: Group) -> None:
    request_stop({}, PLAN, 4, "the task was stopped")
    (place,) = group.held
    assert place == ("orders", stop_partition_of(PLAN), 4)
    assert StopRequest.read_text(group.held[place]) == StopRequest(4, "the task was stopped")
    assert group.is_closed


def test_a_request_that_is_not_stored_is_an_error(group: Group) -> None:
    group.refusal = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaException) as failure:
        request_stop({}, PLAN, 4, "the task was stopped")
    assert failure.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    assert (group.held, group.is_closed) == ({}, True)
