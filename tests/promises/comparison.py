"""Pure: what was asked for beside what was found."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.promises.model import Found, Lineage, Model, Run, Told
from tests.promises.properties import (
    ABORTED,
    COMPLETE,
    COUNTS,
    DOUBLED,
    GROUP,
    LETTERS,
    LOST,
    ORDER,
    PLANNED,
    Anomaly,
)

NOTHING: Counter[int] = Counter()


def check(model: Model, found: Found) -> list[Anomaly]:
    """Compare with what lies in the topics, and say all that is wrong."""
    for said in Comparison(model, found).anomalies():
        model.flag(said)
    return model.anomalies


class Comparison:
    """Everything that was asked for beside everything that was found."""

    def __init__(self, model: Model, found: Found) -> None:
        self.model, self.found = model, found
        self.by_partition: dict[int, tuple[list[int], list[int]]] = {}
        for number, (partition, offset) in sorted(found.source.items(), key=lambda each: each[1]):
            offsets, numbers = self.by_partition.setdefault(partition, ([], []))
            offsets.append(offset)
            numbers.append(number)
        self.outputs = {key: Counter(numbers) for key, numbers in found.outputs.items()}
        self.letters = {key: Counter(numbers) for key, numbers in found.letters.items()}
        self.fates = {number: model.fate(number) for number in found.source}
        self.handled = {run.key: self.times_of(run) for run in model.runs.values()}
        self.published = {
            (moved.lineage, number)
            for moved in model.moved
            if moved.run.kind == "published" and moved.after > moved.before
            for number in (*self.outputs.get(moved.run.key, ()), *self.letters.get(moved.run.key, ()))
        }

    def anomalies(self) -> Iterator[Anomaly]:
        for run in self.model.runs.values():
            yield from self.of_run(run)
        for lineages in self.model.lineages.values():
            for lineage in lineages:
                yield from self.of_lineage(lineage)
                if self.model.ordered and self.model.exactly_once:
                    yield from self.of_order_over_runs(lineage)
        for told in self.model.told:
            yield from self.of_told(told)
        for moved in self.model.moved:
            base = moved.lineage.base or 0
            for number in self.missing(moved.lineage, base, moved.after):
                yield GROUP.broken(
                    f"the group is at {moved.after} after the checkpoint of {moved.run.key}: {self.said(number)} lost"
                )
        yield from self.of_redrives()

    def times_of(self, run: Run) -> dict[int, float]:
        """How often a run has handled each record of which anything has come: one without outputs cannot be seen."""
        outputs, letters = self.outputs.get(run.key, NOTHING), self.letters.get(run.key, NOTHING)
        times: dict[int, float] = {}
        for number in {*outputs, *letters}:
            fate = self.model.fate(number)
            times[number] = letters[number] if fate is None else outputs[number] / fate if fate else 0
        return times

    def times(self, run: Run, number: int) -> float:
        return self.handled[run.key].get(number, 0)

    def of_run(self, run: Run) -> Iterator[Anomaly]:
        outputs, letters = self.outputs.get(run.key, NOTHING), self.letters.get(run.key, NOTHING)
        for number in sorted({*outputs, *letters}):
            partition, offset = self.found.source.get(number, (-1, -1))
            start, end = run.ranges.get(partition, (0, 0))
            if offset < 0:
                yield ABORTED.broken(f"{run.key} has handled record {number}, which was aborted")
            elif not start <= offset < end:
                yield PLANNED.broken(f"{run.key} has handled {self.said(number)}, which is not in its plan")
            fate = self.model.fate(number)
            if (fate is None and outputs[number]) or (fate is not None and letters[number]):
                yield PLANNED.broken(f"{run.key} made of {self.said(number)} what it must not")
            times = self.times(run, number)
            if self.model.exactly_once and (times > 1 or times != int(times)):
                yield DOUBLED.broken(f"{run.key} has handled {self.said(number)} {times:g} times")
        if self.model.ordered and self.model.exactly_once:
            yield from self.of_order(run)

    def of_order(self, run: Run) -> Iterator[Anomaly]:
        last: dict[int, int] = {}
        for number in self.found.outputs.get(run.key, ()):
            partition, offset = self.found.source.get(number, (-1, -1))
            if offset < last.get(partition, -1):
                yield ORDER.broken(f"{run.key} wrote {self.said(number)} behind offset {last[partition]}")
            last[partition] = offset

    def of_lineage(self, lineage: Lineage) -> Iterator[Anomaly]:
        runs = self.runs_of(lineage)
        for number in self.numbers(lineage.partition, 0, None):
            by = {run.key: self.times(run, number) for run in runs}
            if self.model.exactly_once and sum(by.values()) > 1:
                shown = ", ".join(f"{key} {times:g}" for key, times in by.items() if times)
                yield DOUBLED.broken(
                    f"{self.said(number)} was handled more than once since the group was put there: {shown}"
                )
        if self.is_over(lineage):
            for number in self.missing(lineage, lineage.base or 0, None):
                yield LOST.broken(f"{self.said(number)} was never handled, although all was read to its end")

    def is_over(self, lineage: Lineage) -> bool:
        """Whether all of it has been read to its end."""
        model, partition = self.model, lineage.partition
        return model.drained and partition not in model.gone and lineage == model.current(partition)

    def of_order_over_runs(self, lineage: Lineage) -> Iterator[Anomaly]:
        """Of runs that follow each other, by when each output was written, if that is known."""
        followers = {run.key for run in self.runs_of(lineage)}
        last = -1
        for key, number in self.found.written:
            partition, offset = self.found.source.get(number, (-1, -1))
            if key in followers and partition == lineage.partition:
                if offset < last:
                    yield ORDER.broken(f"{key} wrote {self.said(number)} behind offset {last} of a run before")
                last = offset

    def of_told(self, told: Told) -> Iterator[Anomaly]:
        start, end = told.run.ranges[told.partition]
        if told.complete:
            lineage = told.run.lineages[told.partition] if told.run.kind == "live" else None
            for number in self.missing(lineage, start, end, told):
                yield COMPLETE.broken(
                    f"the checkpoint of {told.run.key} is complete, and {self.said(number)} was not handled"
                )
        if told.forgotten:
            return
        if told.run.kind != "live":
            yield from self.of_window_counts(told)
        elif told.alone:
            yield from self.of_counts(told)

    def of_window_counts(self, told: Told) -> Iterator[Anomaly]:
        """A run in a group of its own inherits nothing."""
        wanted = self.sum_of(self.numbers(told.partition, *told.run.ranges[told.partition]))
        if told.complete and told.counts != wanted:
            yield COUNTS.broken(
                f"the checkpoint of {told.run.key} counts {told.counts} in partition {told.partition}, of {wanted}"
            )

    def of_counts(self, told: Told) -> Iterator[Anomaly]:
        """The counts are those of the run, and of the runs before it that no checkpoint has told of."""
        lineage, (_, end) = told.run.lineages[told.partition], told.run.ranges[told.partition]
        who = f"the checkpoint of {told.run.key} counts {told.counts} in partition {told.partition}"
        most = self.sum_of(self.numbers(lineage.partition, lineage.base or 0, None))
        if any(mine > all_ for mine, all_ in zip(told.counts, most, strict=True)):
            yield COUNTS.broken(f"{who}, and there are no more than {most}")
        if not told.complete or told.newer:
            return
        own = [each for each in self.numbers(told.partition, 0, end) if self.times(told.run, each)]
        first = min((self.found.source[each][1] for each in own), default=end)
        at_least = self.sum_of([each for each in own if not self.is_of_another_too(lineage, told.run, each)])
        if any(mine < own_ for mine, own_ in zip(told.counts[1:3], at_least[1:3], strict=True)):
            yield COUNTS.broken(f"{who}, and has handled {at_least} itself")
        if self.model.ordered:
            base = lineage.base or 0
            # What nobody has told of is inherited, unless the run had nothing to do.
            latest = base if told.first and own else first
            sums = [self.sum_of(self.numbers(told.partition, at, end)) for at in range(base, latest + 1)]
            if (reached := told.reached or 0) > end:
                # It has taken over from a run with a later end.
                sums += [self.sum_of(self.numbers(told.partition, at, reached)) for at in range(base, reached + 1)]
            if told.counts not in sums:
                yield COUNTS.broken(f"{who}, which is no sum of records that follow each other up to {end}")

    def is_of_another_too(self, lineage: Lineage, run: Run, number: int) -> bool:
        """Tell whether another run of the lineage has handled a record as well, in at least once.

        If a worker dies between writing and storing, and the checkpoint of that run comes meanwhile, the chunk is not
        redone, and no counts have it.
        """
        others = (other for other in self.runs_of(lineage) if other.key != run.key)
        return not self.model.exactly_once and any(self.times(other, number) for other in others)

    def of_redrives(self) -> Iterator[Anomaly]:
        letters = {number for numbers in self.letters.values() for number in numbers}
        redriven = Counter(number for numbers in self.found.redriven.values() for number in numbers)
        for key, told in self.model.redriven_told.items():
            if told != (found := len(self.found.redriven.get(key, ()))):
                yield LETTERS.broken(f"the redrive {key} counts {told} records, and has brought {found} back")
        for number in sorted(redriven):
            if redriven[number] > 1 or number not in letters:
                yield LETTERS.broken(f"{self.said(number)} was redriven {redriven[number]} times")
        for number in sorted(letters - redriven.keys()) if self.model.redriven_all else ():
            yield LETTERS.broken(f"{self.said(number)} was not redriven")

    def missing(self, lineage: Lineage | None, start: int, end: int | None, told: Told | None = None) -> Iterator[int]:
        """Numbers of records that nobody of the lineage has handled; without one, the run itself has to."""
        runs = self.runs_of(lineage) if lineage else [told.run] if told else []
        handled = [self.handled[run.key] for run in runs]
        partition = lineage.partition if lineage else told.partition if told else 0
        for number in self.numbers(partition, start, end):
            if self.fates[number] == 0 or any(times.get(number, 0) >= 1 for times in handled):
                continue
            if (lineage, number) in self.published:
                continue
            if self.found.source[number][1] < self.model.left.get(partition, 0):
                continue
            yield number

    def runs_of(self, lineage: Lineage) -> list[Run]:
        return [
            run
            for run in self.model.runs.values()
            if run.kind == "live" and run.lineages.get(lineage.partition) == lineage
        ]

    def numbers(self, partition: int, start: int, end: int | None) -> list[int]:
        """Of records that lie in a stretch of a partition."""
        offsets, numbers = self.by_partition.get(partition, ([], []))
        return numbers[bisect_left(offsets, start) : len(offsets) if end is None else bisect_left(offsets, end)]

    def sum_of(self, numbers: Sequence[int]) -> tuple[int, int, int, int]:
        fates = [self.fates[number] for number in numbers]
        return len(fates), sum(each for each in fates if each), fates.count(None), fates.count(0)

    def said(self, number: int) -> str:
        partition, offset = self.found.source.get(number, (-1, -1))
        return f"record {number} (partition {partition}, offset {offset})"
