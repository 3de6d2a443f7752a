from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kpipe_engine.errors import PartitionHaltedError
from kpipe_engine.reading.held_offsets import held_offsets

ASKED = [TopicPartition("orders", 0)]


class Searching:
    """Does not find the group's coordinator, and is told why beside."""

    def __init__(self, assigned: bool, told: int | None) -> None:
        self.assigned, self.told = assigned, told
        self.waits: list[float] = []

    def assignment(self) -> list[TopicPartition]:
        return ASKED if self.assigned else []

    def committed(self, asked: Any, timeout: float) -> list[TopicPartition]:
        self.waits.append(timeout)
        if len(self.waits) > 3:
            return [cast("TopicPartition", SimpleNamespace(offset=7, error=None))]
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def consume(self, most: int, timeout: float) -> list[SimpleNamespace]:
        return [] if self.told is None else [SimpleNamespace(error=lambda: KafkaError(self.told))]


def test_a_group_that_may_not_be_used_is_named_without_a_wait() -> None:
    searching = Searching(assigned=False, told=KafkaError.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(PartitionHaltedError, match=r"may not use the group 'orders\.kpipe' \("):
        held_offsets(cast("Consumer", searching), "orders.kpipe", ASKED, 60)
    assert searching.waits == [0.5]


def test_a_slow_broker_gets_longer_and_longer() -> None:
    searching = Searching(assigned=False, told=None)
    assert [each.offset for each in held_offsets(cast("Consumer", searching), "orders.kpipe", ASKED, 60)] == [7]
    assert searching.waits == [0.5, 1, 2, 4]


@pytest.mark.parametrize("assigned", [False, True])
@pytest.mark.parametrize("code", ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"])
def test_a_coordinator_that_moves_is_asked_again(code: str, assigned: bool) -> None:
    class Moving(Searching):
        def committed(self, asked: Any, timeout: float) -> list[TopicPartition]:
            self.waits.append(timeout)
            if len(self.waits) > 3:
                return [cast("TopicPartition", SimpleNamespace(offset=7, error=None))]
            raise KafkaException(KafkaError(getattr(KafkaError, code)))

        def consume(self, most: int, timeout: float) -> list[SimpleNamespace]:
            raise AssertionError("a record that comes beside would be lost")

    moving = Moving(assigned=assigned, told=None)
    assert [each.offset for each in held_offsets(cast("Consumer", moving), "orders.kpipe", ASKED, 60)] == [7]


def test_a_coordinator_that_never_settles_is_asked_no_longer_than_its_time() -> None:
    class Moving(Searching):
        def committed(self, asked: Any, timeout: float) -> list[TopicPartition]:
            raise KafkaException(KafkaError(KafkaError.NOT_COORDINATOR))

    with pytest.raises(KafkaException) as failure:
        held_offsets(cast("Consumer", Moving(assigned=False, told=None)), "orders.kpipe", ASKED, 0.3)
    assert failure.value.args[0].code() == KafkaError.NOT_COORDINATOR


# Of 4.01 + 60 - 4.01, floating point makes a little more than 60.
@pytest.mark.parametrize("now", [0.0, 4.01])
def test_a_client_that_may_receive_records_asks_once(now: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by a clock that stands still: a record that was listened to must be read again."""
    monkeypatch.setattr("kpipe_engine.reading.held_offsets.time", SimpleNamespace(monotonic=lambda: now))
    searching = Searching(assigned=True, told=None)
    with pytest.raises(KafkaException):
        held_offsets(cast("Consumer", searching), "orders.kpipe", ASKED, 60)
    assert searching.waits == [60]


def test_a_log_that_has_ended_is_not_why_a_group_was_not_found() -> None:
    searching = Searching(assigned=True, told=KafkaError._PARTITION_EOF)
    with pytest.raises(KafkaException) as failure:
        held_offsets(cast("Consumer", searching), "orders.kpipe", ASKED, 60)
    assert failure.value.args[0].code() == KafkaError._TIMED_OUT


def test_a_partition_that_the_group_cannot_be_asked_for_is_not_one_of_which_nothing_is_stored() -> None:
    class Unstable(Searching):
        def committed(self, asked: Any, timeout: float) -> list[TopicPartition]:
            unknown = SimpleNamespace(offset=-1001, error=KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT))
            return [cast("TopicPartition", each) for each in (SimpleNamespace(offset=7, error=None), unknown)]

    with pytest.raises(KafkaException) as failure:
        held_offsets(cast("Consumer", Unstable(assigned=False, told=None)), "orders.kpipe", ASKED, 60)
    assert failure.value.args[0].code() == KafkaError.UNSTABLE_OFFSET_COMMIT
