"""A producer that never stops, until it is told to."""

from __future__ import annotations

import threading
import time
from typing import Any

from confluent_kafka import Producer

from tests.soak.records import PARTITIONS, value_of

TICK_SECONDS = 0.1
FLUSH_SECONDS = 60.0


class ProducerError(Exception):
    """Some records have not come to their topic."""


class SteadyProducer:
    """Sends the records 0, 1, 2 and so on, so many a second, spread over the partitions in turn."""

    def __init__(self, bootstrap_servers: str, topic: str, rate: float) -> None:
        self._topic, self._rate = topic, rate
        # Idempotent, so that a retry inside the client makes no second copy.
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "linger.ms": 20, "enable.idempotence": True, "log_level": 3}
        )
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._send, name="soak-producer")
        self._failed: list[str] = []
        self.sent = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> int:
        """The number of records there are; all of them are acknowledged."""
        self._done.set()
        self._thread.join()
        waiting = self._producer.flush(FLUSH_SECONDS)
        if waiting or self._failed:
            first = self._failed[0] if self._failed else f"no answer within {FLUSH_SECONDS:.0f} s"
            raise ProducerError(
                f"{waiting + len(self._failed)} of {self.sent} records did not reach the topic: {first}"
            )
        return self.sent

    def _send(self) -> None:
        started = time.monotonic()
        while not self._done.wait(TICK_SECONDS):
            while self.sent < (time.monotonic() - started) * self._rate:
                self._send_one()
            self._producer.poll(0)

    def _send_one(self) -> None:
        number = self.sent
        while True:
            try:
                self._producer.produce(
                    self._topic, value_of(number), str(number).encode(), number % PARTITIONS, on_delivery=self._note
                )
                break
            except BufferError:
                self._producer.poll(0.1)
        self.sent += 1

    def _note(self, error: Any, _: Any) -> None:
        if error is not None:
            self._failed.append(str(error))
