"""Producers of records with ids of their own, over a way that nobody disturbs; what becomes of each is written down."""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.torture.cluster import QUIET
from tests.torture.history import History, Kind, Transaction
from tests.torture.pipelines import LARGEST_OUTPUT, PARTITIONS, Victim

SEND_SECONDS = 60.0
KINDS: tuple[Kind, ...] = ("good", "poison", "filtered", "too_large")
WEIGHTS = (90, 3, 6, 0.2)
ENDINGS: tuple[Transaction, ...] = ("none", "none", "committed", "committed", "aborted")


@dataclass(frozen=True)
class Wave:
    """Records for one partition."""

    partition: int
    kinds: tuple[Kind, ...]
    ending: Transaction


def draw_waves(rnd: random.Random, most: int) -> list[Wave]:
    """Draw records for the partitions: some get more than others, and some nothing."""
    sizes = [rnd.choice((0, most // 4, most // 2, most)) for _ in range(PARTITIONS)]
    return [
        Wave(partition, tuple(rnd.choices(KINDS, WEIGHTS, k=size)), rnd.choice(ENDINGS))
        for partition, size in enumerate(sizes)
        if size
    ]


class Workload:
    """The producers: a plain one, and a transactional one for each pipeline."""

    def __init__(self, bootstrap: str, history: History) -> None:
        self._settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "linger.ms": 5, "acks": "all", **QUIET}
        self._history = history
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._producers: dict[str, Producer] = {}
        self.sent = 0

    def send(self, victim: Victim, waves: Iterable[Wave]) -> None:
        with self._lock:
            for wave in waves:
                self._send(victim.source, wave)

    def _send(self, topic: str, wave: Wave) -> None:
        records = [(next(self._ids), kind) for kind in wave.kinds]
        offsets: dict[int, int] = {}
        transaction = wave.ending
        try:
            producer = self._producer(topic, transactional=wave.ending != "none")
            if wave.ending != "none":
                producer.begin_transaction()
            for number, kind in records:
                producer.produce(
                    topic,
                    value_of(number, kind),
                    str(number).encode(),
                    partition=wave.partition,
                    headers=[("torture", str(number))],
                    on_delivery=partial(note, offsets, number),
                )
                producer.poll(0)
            producer.flush(SEND_SECONDS)
            if wave.ending == "committed":
                producer.commit_transaction(SEND_SECONDS)
            elif wave.ending == "aborted":
                producer.abort_transaction(SEND_SECONDS)
        except KafkaException:
            # Nobody knows: the next one fences it.
            self._producers.pop(topic, None)
            transaction = "unknown" if wave.ending == "committed" else wave.ending
        told = [(number, offsets.get(number), kind) for number, kind in records]
        self.sent += len(told)
        self._history.produced(topic=topic, partition=wave.partition, records=told, transaction=transaction)

    def _producer(self, topic: str, transactional: bool) -> Producer:
        name = topic if transactional else ""
        if name not in self._producers:
            own = {"transactional.id": f"torture/{topic}"} if transactional else {"enable.idempotence": True}
            producer = Producer({**self._settings, **own})
            if transactional:
                producer.init_transactions(SEND_SECONDS)
            self._producers[name] = producer
        return self._producers[name]


def note(offsets: dict[int, int], number: int, error: KafkaError | None, message: Message) -> None:
    """Write down where an acknowledged record lies."""
    offset = message.offset()
    if error is None and offset is not None:
        offsets[number] = offset


def value_of(number: int, kind: Kind) -> bytes:
    document: dict[str, Any] = {"id": number, "kind": kind}
    if kind == "too_large":
        document["ballast"] = "x" * LARGEST_OUTPUT
    return json.dumps(document).encode()
