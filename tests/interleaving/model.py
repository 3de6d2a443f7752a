"""Pure: what a schedule of runs must have led to. It shares nothing with the product, and knows only what was asked.

Somebody who resets or deletes a group has its records read again from there: that begins a lineage. Within a lineage,
and within a run of its own such as a backfill, each record is handled once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

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
    anomalies: list[str] = field(default_factory=list)
    redriven_told: dict[str, int] = field(default_factory=dict)
    """How many records redrives count that they have brought back."""
    redriven_all: bool = False
    drained: bool = False

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
                self.flag(f"the plan {key} begins at {start} of partition {partition}, and its group is at {held}")
        return run

    def checkpoint(self, run: Run, before: Mapping[int, int], after: Mapping[int, int], done: bool = True) -> None:
        """A group was seen before a checkpoint and after it, which was refused, or done."""
        for partition in run.ranges:
            lineage = self.current(partition)
            was, came = before.get(partition, -1), after.get(partition, -1)
            stale = run.kind == "backfill" or (run.kind == "live" and run.lineages[partition] != lineage)
            if came < was:
                self.flag(f"the checkpoint of {run.key} took partition {partition} back from {was} to {came}")
            if came != was and run.kind == "backfill":
                self.flag(f"the checkpoint of {run.key}, which is not published, moved partition {partition} to {came}")
            if came != was and stale:
                self.flag(f"the checkpoint of {run.key}, from before a reset, moved partition {partition} to {came}")
            if came >= 0 and run.lineages[partition] == lineage and (done or came > was) and run.kind != "backfill":
                self.told_in.add(lineage)
            if came >= 0 and not stale:
                self.moved.append(Moved(lineage, was, came, run))

    def is_untold(self, run: Run, partition: int) -> bool:
        """Whether no checkpoint has moved the group since it was put where the run begins."""
        lineage = run.lineages[partition]
        return all(each.lineage != lineage or each.after <= (lineage.base or 0) for each in self.moved)

    def flag(self, what: str) -> None:
        if what not in self.anomalies:
            self.anomalies.append(what)

    def check(self, found: Found) -> list[str]:
        """Compare with what lies in the topics, and say all that is wrong."""
        for said in Comparison(self, found).anomalies():
            self.flag(said)
        return self.anomalies


class Comparison:
    """Everything that was asked for beside everything that was found."""

    def __init__(self, model: Model, found: Found) -> None:
        self.model, self.found = model, found
        self.at = {place: number for number, place in found.source.items()}
        self.outputs = {key: Counter(numbers) for key, numbers in found.outputs.items()}
        self.letters = {key: Counter(numbers) for key, numbers in found.letters.items()}
        self.published = {
            (moved.lineage, number)
            for moved in model.moved
            if moved.run.kind == "published" and moved.after > moved.before
            for number in (*self.outputs.get(moved.run.key, ()), *self.letters.get(moved.run.key, ()))
        }

    def anomalies(self) -> Iterator[str]:
        for run in self.model.runs.values():
            yield from self.of_run(run)
        for lineages in self.model.lineages.values():
            for lineage in lineages:
                yield from self.of_lineage(lineage)
        for told in self.model.told:
            yield from self.of_told(told)
        for moved in self.model.moved:
            base = moved.lineage.base or 0
            for number in self.missing(moved.lineage, base, moved.after):
                yield f"the group is at {moved.after} after the checkpoint of {moved.run.key}: {self.said(number)} lost"
        yield from self.of_redrives()

    def times(self, run: Run, number: int) -> float:
        """How often a run has handled a record: a record without outputs cannot be seen."""
        outputs = self.model.fate(number)
        if outputs is None:
            return self.letters.get(run.key, Counter())[number]
        return self.outputs.get(run.key, Counter())[number] / outputs if outputs else 0

    def of_run(self, run: Run) -> Iterator[str]:
        outputs, letters = self.outputs.get(run.key, Counter()), self.letters.get(run.key, Counter())
        for number in sorted({*outputs, *letters}):
            partition, offset = self.found.source.get(number, (-1, -1))
            start, end = run.ranges.get(partition, (0, 0))
            if not start <= offset < end:
                yield f"{run.key} has handled {self.said(number)}, which is not in its plan"
            fate = self.model.fate(number)
            if (fate is None and outputs[number]) or (fate is not None and letters[number]):
                yield f"{run.key} made of {self.said(number)} what it must not"
            times = self.times(run, number)
            if self.model.exactly_once and (times > 1 or times != int(times)):
                yield f"{run.key} has handled {self.said(number)} {times:g} times"
        if self.model.ordered and self.model.exactly_once:
            yield from self.of_order(run)

    def of_order(self, run: Run) -> Iterator[str]:
        last: dict[int, int] = {}
        for number in self.found.outputs.get(run.key, ()):
            partition, offset = self.found.source.get(number, (-1, -1))
            if offset < last.get(partition, -1):
                yield f"{run.key} wrote {self.said(number)} behind offset {last[partition]}"
            last[partition] = offset

    def of_lineage(self, lineage: Lineage) -> Iterator[str]:
        for number in self.numbers(lineage.partition, 0, None):
            by = {run.key: self.times(run, number) for run in self.runs_of(lineage)}
            if self.model.exactly_once and sum(by.values()) > 1:
                shown = ", ".join(f"{key} {times:g}" for key, times in by.items() if times)
                yield f"{self.said(number)} was handled more than once since the group was put there: {shown}"
        if self.model.drained and lineage == self.model.current(lineage.partition):
            for number in self.missing(lineage, lineage.base or 0, None):
                yield f"{self.said(number)} was never handled, although all was read to its end"

    def of_told(self, told: Told) -> Iterator[str]:
        start, end = told.run.ranges[told.partition]
        if told.complete:
            lineage = told.run.lineages[told.partition] if told.run.kind == "live" else None
            for number in self.missing(lineage, start, end, told):
                yield f"the checkpoint of {told.run.key} is complete, and {self.said(number)} was not handled"
        if told.run.kind != "live":
            yield from self.of_window_counts(told)
        elif told.alone:
            yield from self.of_counts(told)

    def of_window_counts(self, told: Told) -> Iterator[str]:
        """A run in a group of its own inherits nothing."""
        wanted = self.sum_of(self.numbers(told.partition, *told.run.ranges[told.partition]))
        if told.complete and told.counts != wanted:
            yield f"the checkpoint of {told.run.key} counts {told.counts} in partition {told.partition}, of {wanted}"

    def of_counts(self, told: Told) -> Iterator[str]:
        """The counts are those of the run, and of the runs before it that no checkpoint has told of."""
        lineage, (_, end) = told.run.lineages[told.partition], told.run.ranges[told.partition]
        who = f"the checkpoint of {told.run.key} counts {told.counts} in partition {told.partition}"
        most = self.sum_of(self.numbers(lineage.partition, lineage.base or 0, None))
        if any(mine > all_ for mine, all_ in zip(told.counts, most, strict=True)):
            yield f"{who}, and there are no more than {most}"
        if not told.complete or told.newer:
            return
        own = [
            self.found.source[each][1] for each in self.numbers(told.partition, 0, end) if self.times(told.run, each)
        ]
        first = min(own, default=end)
        at_least = self.sum_of([self.at[told.partition, offset] for offset in own])
        if any(mine < own_ for mine, own_ in zip(told.counts[1:3], at_least[1:3], strict=True)):
            yield f"{who}, and has handled {at_least} itself"
        if self.model.ordered:
            base = lineage.base or 0
            # What nobody has told of is inherited, unless the run had nothing to do.
            latest = base if told.first and own else first
            begins = [self.sum_of(self.numbers(told.partition, at, end)) for at in range(base, latest + 1)]
            if told.counts not in begins:
                yield f"{who}, which is no sum of records that follow each other up to {end}"

    def of_redrives(self) -> Iterator[str]:
        letters = {number for numbers in self.letters.values() for number in numbers}
        redriven = Counter(number for numbers in self.found.redriven.values() for number in numbers)
        for key, told in self.model.redriven_told.items():
            if told != (found := len(self.found.redriven.get(key, ()))):
                yield f"the redrive {key} counts {told} records, and has brought {found} back"
        for number in sorted(redriven):
            if redriven[number] > 1 or number not in letters:
                yield f"{self.said(number)} was redriven {redriven[number]} times"
        for number in sorted(letters - redriven.keys()) if self.model.redriven_all else ():
            yield f"{self.said(number)} was not redriven"

    def missing(self, lineage: Lineage | None, start: int, end: int | None, told: Told | None = None) -> Iterator[int]:
        """Numbers of records that nobody of the lineage has handled; without one, the run itself has to."""
        runs = self.runs_of(lineage) if lineage else [told.run] if told else []
        partition = lineage.partition if lineage else told.partition if told else 0
        for number in self.numbers(partition, start, end):
            if self.model.fate(number) == 0 or (lineage, number) in self.published:
                continue
            if not any(self.times(run, number) >= 1 for run in runs):
                yield number

    def runs_of(self, lineage: Lineage) -> list[Run]:
        return [
            run
            for run in self.model.runs.values()
            if run.kind == "live" and run.lineages.get(lineage.partition) == lineage
        ]

    def numbers(self, partition: int, start: int, end: int | None) -> list[int]:
        return [
            number
            for (at, offset), number in sorted(self.at.items())
            if at == partition and offset >= start and (end is None or offset < end)
        ]

    def sum_of(self, numbers: Sequence[int]) -> tuple[int, int, int, int]:
        fates = [self.model.fate(number) for number in numbers]
        return (
            len(fates),
            sum(each for each in fates if each),
            sum(each is None for each in fates),
            sum(each == 0 for each in fates),
        )

    def said(self, number: int) -> str:
        partition, offset = self.found.source.get(number, (-1, -1))
        return f"record {number} (partition {partition}, offset {offset})"
