from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from airflow_provider_kpipe.kafka.held_offsets import held_offsets

ASKED = [TopicPartition("orders", 0)]


class Searching:
    """Finds the group's coordinator at a later try, or is told beside that it may not."""

    def __init__(self, failures: int, told: int | None = None) -> None:
        self.failures, self.told = failures, told
        self.waits: list[float] = []

    def committed(self, asked: Any, timeout: float) -> list[SimpleNamespace]:
        self.waits.append(timeout)
        if len(self.waits) <= self.failures:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return [SimpleNamespace(partition=0, offset=7, error=None)]

    def poll(self, timeout: float) -> SimpleNamespace | None:
        return None if self.told is None else SimpleNamespace(error=lambda: KafkaError(self.told))


def test_a_client_that_may_not_look_for_the_group_is_not_waited_for() -> None:
    searching = Searching(failures=99, told=KafkaError.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaException) as failure:
        held_offsets(cast("Consumer", searching), ASKED, 30)
    assert failure.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    assert searching.waits == [0.5]


def test_a_slow_broker_gets_longer_and_longer() -> None:
    searching = Searching(failures=3)
    assert [each.offset for each in held_offsets(cast("Consumer", searching), ASKED, 30)] == [7]
    assert searching.waits == [0.5, 1, 2, 4]


def test_the_time_that_is_given_is_the_bound() -> None:
    searching = Searching(failures=99)
    with pytest.raises(KafkaException):
        held_offsets(cast("Consumer", searching), ASKED, 0)
    assert searching.waits == [0]


def test_a_partition_that_the_group_cannot_be_asked_for_is_not_one_where_it_stands_nowhere() -> None:
    class Unstable(Searching):
        def committed(self, asked: Any, timeout: float) -> list[SimpleNamespace]:
            unknown = SimpleNamespace(partition=1, offset=-1001, error=KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT))
            return [*super().committed(asked, timeout), unknown]

    with pytest.raises(KafkaException) as failure:
        held_offsets(cast("Consumer", Unstable(failures=0)), ASKED, 30)
    assert failure.value.args[0].code() == KafkaError.UNSTABLE_OFFSET_COMMIT
