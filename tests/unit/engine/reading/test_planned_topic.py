"""Brokers that do not answer about a topic, or have yet to hear of it; those that answer are in `tests/broker`."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kpipe_engine.errors import NoAnswerError, PartitionHaltedError
from kpipe_engine.reading import planned_topic as module
from kpipe_engine.reading.planned_topic import GONE_SECONDS, LOOK_SECONDS, PlannedTopic
from tests.kit.plans import plan_of

UNKNOWN = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))


class Described:
    def __init__(self, topic_id: str) -> None:
        self.topic_id = topic_id


class Admin:
    """Gives one answer after the other, the last one again and again."""

    answers: list[Any]

    def __init__(self, settings: Any) -> None:
        """It needs none."""

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Future[Any]]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        future: Future[Any] = Future()
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(Described(answer))
        return {"orders": future}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(module, "AdminClient", Admin)
    return now


def check(*answers: Any) -> None:
    Admin.answers = list(answers)
    PlannedTopic({}, plan_of(topic_id="abc")).check()


def test_the_planned_one_passes_also_where_a_broker_hears_of_it_late(clock: list[float]) -> None:
    check("abc")
    check(UNKNOWN, UNKNOWN, "abc")
    assert 0 < clock[0] < GONE_SECONDS


def test_a_re_created_or_deleted_topic_stops_the_partition(clock: list[float]) -> None:
    with pytest.raises(PartitionHaltedError, match=r"re-created while it was read \(its id was abc, now it is another"):
        check("another")
    with pytest.raises(PartitionHaltedError, match="topic 'orders' was deleted while it was read"):
        check(UNKNOWN)
    assert clock[0] >= GONE_SECONDS


@pytest.mark.parametrize("silence", [TimeoutError(), KafkaException(KafkaError(KafkaError._TIMED_OUT))], ids=repr)
def test_silence_is_asked_again_and_fails_the_chunk_in_the_end(clock: list[float], silence: Exception) -> None:
    check(silence, silence, "abc")
    with pytest.raises(NoAnswerError, match="did not answer within 30 s when topic 'orders' was looked at"):
        check(silence)
    assert clock[0] >= LOOK_SECONDS


def test_a_topic_that_may_not_be_seen_is_named() -> None:
    with pytest.raises(PartitionHaltedError, match="the connection's user may not use the topic 'orders'"):
        check(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
