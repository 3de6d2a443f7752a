"""Reads back from Kafka what a demo run has left there."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox.demo_report import Outcome, PartitionOutcome
from airflow_provider_kpipe.sandbox.errors import SandboxError
from airflow_provider_kpipe.sandbox.orders import (
    DEAD,
    ENRICHED,
    PARTITIONS,
    TOPIC,
    Kind,
    kind_of,
    number_of,
    partition_of,
)

_BATCH = 10_000
_SILENCE_SECONDS = 30.0
_KIND_OF_EXCEPTION: Mapping[str, Kind] = {
    "json.decoder.JSONDecodeError": "broken_json",
    "KeyError": "missing_field",
    "ValueError": "null_value",
}


@dataclass(slots=True)
class Found:
    """What the output and the dead-letter topic hold, by the partition that it came from."""

    written: Counter[int] = field(default_factory=Counter)
    dead: Counter[tuple[int, Kind]] = field(default_factory=Counter)
    repeated: int = 0


def read_back(bootstrap_servers: str, group: str, state: str, checkpoint: Mapping[str, Any] | None) -> Outcome:
    """The outcome of a run: its checkpoint's numbers beside those of Kafka itself."""
    found = _find(bootstrap_servers)
    with Positions({"bootstrap.servers": bootstrap_servers}) as positions:
        topic = positions.topic(TOPIC)
        ends = positions.latest(topic, "read_committed")
        committed = positions.group_offsets(group, TOPIC, topic.partitions)
    said = {each["partition"]: each for each in (checkpoint or {}).get("partitions", ())}
    return Outcome(
        state=state,
        partitions=tuple(
            PartitionOutcome(
                partition=partition,
                start=each["start"],
                end=each["end"],
                written=each["counts"]["written"],
                dead_lettered=each["counts"]["dead_lettered"],
                found_written=found.written[partition],
                found_dead={kind: count for (where, kind), count in found.dead.items() if where == partition},
                committed=committed[partition].offset if partition in committed else None,
                log_end=ends[partition],
            )
            for partition, each in sorted(said.items())
        ),
        repeated=found.repeated,
    )


def _find(bootstrap_servers: str) -> Found:
    found = Found()
    _count_written(read_to_end(bootstrap_servers, ENRICHED, range(PARTITIONS)), found)
    _count_dead(read_to_end(bootstrap_servers, DEAD, (0,)), found)
    return found


def _count_written(messages: Iterable[Message], found: Found) -> None:
    seen: set[int] = set()
    for message in messages:
        number = number_of(json.loads(message.value() or b"")["order_id"])
        if kind_of(number) != "good":
            raise SandboxError(f"order {number} is poison, and is in {ENRICHED!r} all the same")
        if number in seen:
            found.repeated += 1
        else:
            seen.add(number)
            found.written[partition_of(number)] += 1


def _count_dead(messages: Iterable[Message], found: Found) -> None:
    seen: set[tuple[int, int]] = set()
    for message in messages:
        headers = dict(cast("list[tuple[str, bytes]]", message.headers()))
        source = int(headers["kpipe-source-partition"]), int(headers["kpipe-source-offset"])
        if source in seen:
            found.repeated += 1
        else:
            seen.add(source)
            found.dead[source[0], _KIND_OF_EXCEPTION[headers["kpipe-fault-exception"].decode()]] += 1


def read_to_end(bootstrap_servers: str, topic: str, partitions: Sequence[int]) -> Iterator[Message]:
    """Every committed record of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "kpipe-demo",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 50,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        unfinished = set(partitions)
        silent_since = time.monotonic()
        while unfinished:
            messages = consumer.consume(_BATCH, timeout=1.0)
            if messages:
                silent_since = time.monotonic()
            elif time.monotonic() - silent_since > _SILENCE_SECONDS:
                raise SandboxError(f"{topic!r} at {bootstrap_servers} gave nothing for {_SILENCE_SECONDS:.0f} s")
            for message in messages:
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(message.partition() or 0)
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
