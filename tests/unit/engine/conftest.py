"""Stand-ins for what a partition worker talks to. Messages are confluent-kafka's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


class FakeProducer:
    """Keeps what it took. `full` is how often its queue is full first, `is_empty` whether there is nothing in it then,
    `refusals` what it raises for which value."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.full = 0
        self.is_empty = False
        self.polled: list[float] = []
        self.refusals: dict[Any, Exception] = {}

    def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        callback: Any = ...,
        on_delivery: Any = ...,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        if self.full:
            self.full -= 1
            raise BufferError("Local: Queue full")
        if value in self.refusals:
            raise self.refusals[value]
        # As in the client: the second name counts only where the first is not said at all, not even as None.
        called = next((each for each in (callback, on_delivery) if each is not ...), None)
        taken = {"topic": topic, "value": value, "key": key, "partition": partition, "timestamp": timestamp}
        self.taken.append({**taken, "headers": headers, "on_delivery": called})

    def poll(self, seconds: float) -> int:
        self.polled.append(seconds)
        return 0


class FakeDelivery:
    """A delivery whose acknowledgements are itself; `on_delivery_of` shows what it was asked for."""

    def __init__(self, producer: FakeProducer) -> None:
        self.producer = producer
        self.produce_untraced: Callable[..., None] = producer.produce

    def trace(self) -> None:
        def take_nothing(*_message: Any) -> None:
            raise BufferError

        self.produce_untraced = take_nothing

    @property
    def acks(self) -> FakeDelivery:
        return self

    def make_room(self) -> bool:
        """Says whether there is nothing left in the queue."""
        self.producer.poll(0.1)
        return self.producer.is_empty

    def raise_refusal(self) -> None:
        """The broker has refused nothing."""

    def on_delivery_of(self, source_offset: int, kind: str) -> Any:
        return (source_offset, kind)


@pytest.fixture
def producer() -> FakeProducer:
    return FakeProducer()


@pytest.fixture
def delivery(producer: FakeProducer) -> FakeDelivery:
    return FakeDelivery(producer)
