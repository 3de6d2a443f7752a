"""Pure: what a schedule of runs must have led to. It shares nothing with the product, and knows only what was asked.

Somebody who resets or deletes a group has its records read again from there: that begins a lineage. Within a lineage,
and within a run of its own such as a backfill, each record is handled once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tests.promises.properties import GROUP, Anomaly

Kind = Literal["live", "backfill", "published"]
Place = tuple[int, int]
"""The partition and the offset of a record in the source."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """The runs of a partition that follow each other from where somebody has put the group."""

    number: int
    partition: int
    base: int | None
    """None where the group holds no offset."""


@dataclass(slots=True)
class Run:
    """One plan, and what it was made in."""

    key: str
    kind: Kind
    ranges: Mapping[int, tuple[int, int]]
    lineages: Mapping[int, Lineage]


@dataclass(frozen=True, slots=True)
class Told:
    """What a checkpoint has said of a partition."""

    run: Run
    partition: int
    complete: bool
    read: int
    written: int
    dead_lettered: int
    filtered: int
    newer: bool
    """Whether a later run of the partition had been planned by then."""
    alone: bool
    """Whether no backfill had been published by then."""
    first: bool = False
    """Whether no checkpoint had moved the group since somebody had put it there."""
    forgotten: bool = False
    """Whether what was counted has expired or was stored over, or records that count have left the topic."""
    reached: int | None = None
    """Where the group is by then: beyond the range, if the run has taken over from one with a later end."""

    @property
    def counts(self) -> tuple[int, int, int, int]:
        return self.read, self.written, self.dead_lettered, self.filtered


@dataclass(frozen=True, slots=True)
class Moved:
    """Where a checkpoint has left a group, in the lineage of that time."""

    lineage: Lineage
    before: int
    after: int
    run: Run


@dataclass(slots=True)
class Found:
    """What lies in the topics in the end: of each run, how often each record has come out, and in which order."""

    source: Mapping[int, Place]
    outputs: Mapping[str, Sequence[int]]
    letters: Mapping[str, Sequence[int]]
    redriven: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By the redrive that has brought them back."""
    written: Sequence[tuple[str, int]] = ()
    """Outputs of all runs in the order in which they were written, where that is known."""


@dataclass(slots=True)
class Model:
    """What was asked for, as it comes."""

    exactly_once: bool
    ordered: bool
    fate: Callable[[int], int | None]
    """How many outputs a record has; None is a dead letter."""
    lineages: dict[int, list[Lineage]] = field(default_factory=dict)
    told_in: set[Lineage] = field(default_factory=set)
    runs: dict[str, Run] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)
    redriven_told: dict[str, int] = field(default_factory=dict)
    """How many records redrives count that they have brought back."""
    redriven_all: bool = False
    drained: bool = False
    left: dict[int, int] = field(default_factory=dict)
    """By partition, up to where records have left the topic before anybody has had to read them."""
    gone: set[int] = field(default_factory=set)
    """Partitions of a topic that was deleted."""

    def add_partition(self, partition: int) -> None:
        self.lineages[partition] = [Lineage(1, partition, None)]

    def current(self, partition: int) -> Lineage:
        return self.lineages[partition][-1]

    def can_move(self, partition: int, base: int | None) -> bool:
        """Nobody can tell that a group was put anew where a run found it that no checkpoint has come after."""
        return all(each.base != base or each in self.told_in for each in self.lineages[partition])

    def move(self, partition: int, base: int | None) -> None:
        """Somebody has reset the group, or deleted it."""
        before = self.lineages[partition]
        before.append(Lineage(len(before) + 1, partition, base))

    def plan(
        self, key: str, kind: Kind, ranges: Mapping[int, tuple[int, int]], held: Mapping[int, int] | None = None
    ) -> Run:
        """Where the group stood when it was made counts only for those that follow the group."""
        run = Run(key, kind, ranges, {each: self.current(each) for each in ranges})
        self.runs[key] = run
        for partition, (start, _) in ranges.items() if held and kind == "live" else ():
            if held and start < held.get(partition, 0):
                self.flag(
                    GROUP.broken(
                        f"the plan {key} begins at {start} of partition {partition}, and its group is at {held}"
                    )
                )
        return run

    def checkpoint(self, run: Run, before: Mapping[int, int], after: Mapping[int, int], done: bool = True) -> None:
        """A group was seen before a checkpoint and after it, which was refused, or done."""
        for partition in run.ranges:
            lineage = self.current(partition)
            was, came = before.get(partition, -1), after.get(partition, -1)
            stale = run.kind == "backfill" or (run.kind == "live" and run.lineages[partition] != lineage)
            if came < was:
                self.flag(
                    GROUP.broken(f"the checkpoint of {run.key} took partition {partition} back from {was} to {came}")
                )
            if came != was and run.kind == "backfill":
                self.flag(
                    GROUP.broken(
                        f"the checkpoint of {run.key}, which is not published, moved partition {partition} to {came}"
                    )
                )
            if came != was and stale:
                self.flag(
                    GROUP.broken(
                        f"the checkpoint of {run.key}, from before a reset, moved partition {partition} to {came}"
                    )
                )
            if came >= 0 and run.lineages[partition] == lineage and (done or came > was) and run.kind != "backfill":
                self.told_in.add(lineage)
            if came >= 0 and not stale:
                self.moved.append(Moved(lineage, was, came, run))

    def is_untold(self, run: Run, partition: int) -> bool:
        """Whether no checkpoint has moved the group since it was put where the run begins."""
        lineage = run.lineages[partition]
        return all(each.lineage != lineage or each.after <= (lineage.base or 0) for each in self.moved)

    def flag(self, what: Anomaly) -> None:
        if what not in self.anomalies:
            self.anomalies.append(what)
