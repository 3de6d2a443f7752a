"""The events of a history: one class for each method of its writer, with the same fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Fate = int | str
"""How many outputs a record has, or `dead`."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something at a moment of the machine's monotonic clock; the index is its line."""

    index: int
    at: float


@dataclass(frozen=True, slots=True)
class Begun(Event):
    seed: int
    minutes: float
    commit: str
    started: str


@dataclass(frozen=True, slots=True)
class Ended(Event):
    pass


@dataclass(frozen=True, slots=True)
class Produced(Event):
    topic: str
    partition: int
    records: Sequence[tuple[int, int | None, str]]
    transaction: str


@dataclass(frozen=True, slots=True)
class LogStartMoved(Event):
    topic: str
    partition: int
    offset: int
    how: str


@dataclass(frozen=True, slots=True)
class Declared(Event):
    pipeline: str
    group: str
    source: str
    destination: str
    dead_letter: str | None
    delivery: str
    ordered: bool
    fates: Mapping[str, Fate]
    on_data_loss: str
    tells_run: bool
    keeps_value: bool
    keeps_headers: bool

    @property
    def exactly_once(self) -> bool:
        return self.delivery == "exactly_once"


@dataclass(frozen=True, slots=True)
class Planned(Event):
    pipeline: str
    run: str
    kind: str
    number: int
    group: str
    topic: str
    ranges: Mapping[int, tuple[int, int]]
    fates: Mapping[str, Fate] | None

    def holds(self, partition: int, offset: int) -> bool:
        start, end = self.ranges.get(partition, (0, 0))
        return start <= offset < end


@dataclass(frozen=True, slots=True)
class TaskBegun(Event):
    pipeline: str
    run: str
    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class TaskEnded(Event):
    pipeline: str
    run: str
    task: str
    attempt: int
    outcome: str
    error: str | None


@dataclass(frozen=True, slots=True)
class CheckpointTold(Event):
    pipeline: str
    run: str
    green: bool
    partitions: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class RedriveTold(Event):
    pipeline: str
    run: str
    complete: bool
    outcomes: Mapping[str, int]
    written: int
    dead_lettered: int


@dataclass(frozen=True, slots=True)
class GroupSeen(Event):
    group: str
    topic: str
    looked: float
    committed: Mapping[int, int]
    stored: Mapping[int, int] | None


@dataclass(frozen=True, slots=True)
class GroupReset(Event):
    group: str
    topic: str
    offsets: Mapping[int, int | None]
    began: float
    how: str


@dataclass(frozen=True, slots=True)
class StableSeen(Event):
    topic: str
    looked: float
    stable: Mapping[int, int]
    ends: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class FaultBegun(Event):
    fault: int
    kind: str
    target: str
    outage: bool
    detail: str


@dataclass(frozen=True, slots=True)
class FaultEnded(Event):
    fault: int
    effect: str | None


@dataclass(frozen=True, slots=True)
class Drained(Event):
    pipeline: str
    partitions: Mapping[int, int]


EVENTS: Mapping[str, type[Event]] = {
    "begun": Begun,
    "ended": Ended,
    "produced": Produced,
    "log_start_moved": LogStartMoved,
    "declared": Declared,
    "planned": Planned,
    "task_begun": TaskBegun,
    "task_ended": TaskEnded,
    "checkpoint_told": CheckpointTold,
    "redrive_told": RedriveTold,
    "group_seen": GroupSeen,
    "group_reset": GroupReset,
    "stable_seen": StableSeen,
    "fault_begun": FaultBegun,
    "fault_ended": FaultEnded,
    "drained": Drained,
}
# JSON has texts for keys.
_BY_PARTITION = {"ranges", "committed", "stored", "offsets", "stable", "ends"}


def read_history(path: Path) -> Iterator[Event]:
    with path.open(encoding="utf-8") as lines:
        for index, line in enumerate(lines):
            yield event_of(index, json.loads(line))


def event_of(index: int, fields: dict[str, Any]) -> Event:
    name = fields.pop("event")
    for field in _BY_PARTITION & fields.keys():
        fields[field] = _by_partition(fields[field])
    if name == "drained":
        fields["partitions"] = _by_partition(fields["partitions"])
    return EVENTS[name](index=index, **fields)


def _by_partition(told: Mapping[str, Any] | None) -> dict[int, Any] | None:
    return None if told is None else {int(partition): each for partition, each in told.items()}
