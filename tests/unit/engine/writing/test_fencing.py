from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kpipe_engine.client_settings import ANSWER_SECONDS
from kpipe_engine.errors import PartitionHaltedError
from kpipe_engine.writing import fencing
from kpipe_engine.writing.fencing import fence_writers


class Broker:
    """Keeps what producers do, and forbids one of the ids."""

    def __init__(self) -> None:
        self.done: list[tuple[str, ...]] = []
        self.forbidden = ""

    def producer(self, settings: dict[str, Any]) -> Any:
        return Fencing(self, settings["transactional.id"])


class Fencing:
    def __init__(self, broker: Broker, transactional_id: str) -> None:
        self._broker, self._id = broker, transactional_id

    def init_transactions(self, seconds: float) -> None:
        assert seconds == ANSWER_SECONDS
        if self._id == self._broker.forbidden:
            raise KafkaException(KafkaError(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        self._broker.done.append(("fence", self._id))

    def close(self) -> None:
        self._broker.done.append(("close", self._id))


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(fencing, "Producer", made.producer)
    return made


def test_each_writer_is_fenced_and_its_producer_is_closed_before_the_next_one(broker: Broker) -> None:
    fence_writers({}, iter(["a", "b"]))
    assert broker.done == [("fence", "a"), ("close", "a"), ("fence", "b"), ("close", "b")]


def test_an_id_that_may_not_be_used_is_named_and_its_producer_is_closed(broker: Broker) -> None:
    broker.forbidden = "a"
    with pytest.raises(PartitionHaltedError, match="'a'"):
        fence_writers({}, ["a", "b"])
    assert broker.done == [("close", "a")]
