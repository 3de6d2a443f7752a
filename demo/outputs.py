"""The outcome of a demo run, read back from Kafka."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from confluent_kafka import Message

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.kafka.bounded_reader import read_range
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox.errors import SandboxError
from demo.orders import (
    DEAD,
    ENRICHED,
    TOPIC,
    Kind,
    kind_of,
    number_of,
    partition_of,
)
from demo.report import Outcome, PartitionOutcome

_KIND_OF_EXCEPTION: Mapping[str, Kind] = {
    "json.decoder.JSONDecodeError": "broken_json",
    "KeyError": "missing_field",
    "ValueError": "null_value",
}


@dataclass(slots=True)
class Found:
    """Counts of the records in the output and the dead-letter topic, by their source partition."""

    written: Counter[int] = field(default_factory=Counter)
    dead: Counter[tuple[int, Kind]] = field(default_factory=Counter)
    repeated: int = 0


def read_back(bootstrap_servers: str, group: str, state: str, checkpoint: Mapping[str, Any] | None) -> Outcome:
    """Return the outcome of a run: its checkpoint's numbers beside those found in Kafka."""
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
    found, settings = Found(), {"bootstrap.servers": bootstrap_servers}
    _count_written(_records_of(settings, ENRICHED), found)
    _count_dead(_records_of(settings, DEAD), found)
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


def _records_of(settings: Mapping[str, str], name: str) -> Iterator[Message]:
    """Yield every committed record of a topic."""
    with Positions(settings) as positions:
        topic = positions.topic(name)
        first, end = (ask(topic, "read_committed") for ask in (positions.earliest, positions.latest))
    for partition in topic.partitions:
        yield from read_range(settings, name, PartitionRange(partition, first[partition], end[partition], None))
