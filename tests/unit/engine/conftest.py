"""Stand-ins for what a partition worker talks to. Messages are confluent-kafka's own."""

from __future__ import annotations

from typing import Any

import pytest

from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing import producer_session
from kpipe_engine.writing.backpressure import Admission
from kpipe_engine.writing.producer_session import ProducerSession

LONGEST_QUEUE = 1_000


class FakeProducer:
    """Keeps what it took. `full` is how often its queue is full first, `is_empty` whether there is nothing in it then,
    `refusals` what it raises for which value."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.full = 0
        self.is_empty = False
        self.polled: list[float] = []
        self.refusals: dict[Any, Exception] = {}
        self.settings: dict[str, Any] = {}
        self.callbacks: list[Any] = []

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
        self.callbacks.append(called)
        taken = {"topic": topic, "value": value, "key": key, "partition": partition, "timestamp": timestamp}
        self.taken.append({**taken, "headers": headers, "record": called and called.args[1:]})

    def poll(self, seconds: float) -> int:
        self.polled.append(seconds)
        return 0

    def __len__(self) -> int:
        """Messages in the queue: each poll takes one out of it."""
        return 0 if self.is_empty else LONGEST_QUEUE - len(self.polled)

    def flush(self, _seconds: float) -> int:
        return 0

    def purge(self) -> None:
        """Drop nothing."""

    def close(self) -> None:
        """Stay as it is: the next producer of a session is the same one."""


@pytest.fixture
def producer() -> FakeProducer:
    return FakeProducer()


@pytest.fixture
def session(producer: FakeProducer, monkeypatch: pytest.MonkeyPatch) -> ProducerSession:
    """A session whose producer is not real."""

    def open_it(settings: dict[str, Any]) -> FakeProducer:
        producer.settings = settings
        return producer

    monkeypatch.setattr(producer_session, "Producer", open_it)
    nobody: Any = None
    return ProducerSession({}, "out", Admission(nobody, nobody, StopSignal(), lambda: False))
