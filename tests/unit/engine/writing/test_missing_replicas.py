from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kpipe_engine.errors import ChunkFailedError, NoAnswerError, PartitionHaltedError
from kpipe_engine.writing import missing_replicas
from kpipe_engine.writing.missing_replicas import is_well, reason_with_replicas

WHOLE = SimpleNamespace(leader=1, replicas=[1, 2, 3], isrs=[1, 2, 3])
LACKING = SimpleNamespace(leader=1, replicas=[1, 2, 3], isrs=[1])
LEADERLESS = SimpleNamespace(leader=-1, replicas=[2], isrs=[2])
TOPICS = {"whole": {0: WHOLE}, "lacking": {0: WHOLE, 1: LACKING}, "gone": {0: LEADERLESS}, "unknown": {}}


class Admin:
    def __init__(self, settings: Any) -> None:
        self.is_there = "nobody" not in settings["bootstrap.servers"]

    def list_topics(self, topic: str, timeout: float) -> Any:
        if not self.is_there:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=TOPICS[topic])})


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_replicas, "AdminClient", Admin)


def after(failure: Exception) -> Exception:
    stop = PartitionHaltedError("nothing is taken; run again")
    stop.__cause__ = failure
    return stop


def reason(stop: Exception, *written: str, at: str = "somewhere") -> str:
    return reason_with_replicas(stop, {"bootstrap.servers": at}, written)


@pytest.mark.parametrize(
    "stop",
    [
        after(ChunkFailedError("refused")),
        after(NoAnswerError("silence")),
        KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT)),
        KafkaException(KafkaError(KafkaError.CONCURRENT_TRANSACTIONS)),
    ],
)
def test_topics_that_lack_replicas_are_named_before_the_rest(stop: Exception) -> None:
    assert reason(stop, "whole", "lacking", "unknown", "gone").startswith(
        "topic 'lacking' has 1 of 3 replicas in sync in partition 1, topic 'gone' has no leader in partition 0, "
        "and may take nothing until that is fixed: "
    )


def test_of_topics_that_have_them_nothing_is_said() -> None:
    assert reason(after(NoAnswerError("silence")), "whole", "unknown") == "nothing is taken; run again"


def test_nobody_who_answers_changes_nothing() -> None:
    assert reason(after(NoAnswerError("silence")), "lacking", at="nobody") == "nothing is taken; run again"


@pytest.mark.parametrize(
    "stop",
    [
        PartitionHaltedError("records are lost"),
        KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)),
        after(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))),
    ],
)
def test_a_stop_with_another_cause_does_not_blame_replicas(stop: Exception) -> None:
    assert "lacking" not in reason(stop, "lacking")


@pytest.mark.parametrize(
    ("written", "at", "well"),
    [
        (["whole", "unknown"], "somewhere", True),
        (["whole", "lacking"], "somewhere", False),
        (["gone"], "somewhere", False),
        (["whole"], "nobody", False),
    ],
)
def test_a_cluster_is_well_that_answers_and_lacks_nothing(written: list[str], at: str, well: bool) -> None:
    assert is_well({"bootstrap.servers": at}, written) is well
