"""Lost and doubled records: each one is handled once in each lineage, and once in each run of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.torture.checker.anomalies import Anomaly, Gathered
from tests.torture.checker.known import Lineage, Pipeline, Run
from tests.torture.checker.sources import Sources
from tests.torture.checker.tally import Tally


@dataclass(frozen=True, slots=True)
class Required:
    """A span of a partition that has to have been handled, and why."""

    who: Lineage | Run
    partition: int
    start: int
    end: int | None
    why: str
    told: int | None = None
    """The line at which a checkpoint has said so: what is planned later cannot have done it."""


class Records:
    def __init__(self, pipeline: Pipeline, sources: Sources, tally: Tally) -> None:
        self.pipeline, self.sources, self.tally = pipeline, sources, tally
        self.anomalies = Gathered()
        self._in_lineages: Mapping[int, dict[int, float]] = self._sums()

    def check(self, required: list[Required]) -> Iterator[Anomaly]:
        if self.pipeline.declared.tells_run:
            if self.pipeline.declared.exactly_once:
                self._of_runs()
                self._of_lineages()
            for each in required:
                self._missing(each)
        else:
            self._of_sums(required)
        yield from self.anomalies

    def _sums(self) -> dict[int, dict[int, float]]:
        """How often the live runs of a lineage have handled each record, by the number of the lineage."""
        sums: dict[int, dict[int, float]] = defaultdict(dict)
        for run in self.pipeline.runs_of("live"):
            for number in self._handled_by(run):
                partition, _ = self.sources.offset_in(number)
                in_lineage = sums[run.lineages.get(partition, 0)]
                in_lineage[number] = in_lineage.get(number, 0) + self.tally.times(run, number)
        return sums

    def _handled_by(self, run: Run) -> set[int]:
        return self.tally.outputs.get(run.key, {}).keys() | self.tally.letters.get(run.key, {}).keys()

    def _of_runs(self) -> None:
        for run in self.pipeline.runs.values():
            for number in self._handled_by(run) if run.kind != "redrive" else ():
                times = self.tally.times(run, number)
                if times > self._places(number):
                    self._say("doubled", f"run {run.key} has handled a record {times:g} times", number)
                elif times != int(times):
                    self._say("lost", f"run {run.key} wrote a part of the outputs of a record", number)

    def _of_lineages(self) -> None:
        for lineage, sums in self._in_lineages.items():
            for number, times in sums.items():
                if times > self._places(number):
                    self._say(
                        "doubled", f"live runs of lineage {lineage} have handled a record {times:g} times", number
                    )

    def _missing(self, required: Required) -> None:
        placed = self.sources.topics[self.pipeline.declared.source][required.partition]
        who = required.who
        for _, number in placed.between(required.start, required.end):
            if self._may_be_missing(number):
                continue
            if isinstance(who, Run):
                times = self.tally.times(who, number)
            else:
                times = self._in_lineages.get(who.number, {}).get(number, 0) or self._published(required, number)
            if times < 1:
                self._say("lost", required.why, number)

    def _published(self, required: Required, number: int) -> float:
        return sum(
            self.tally.times(run, number)
            for run in self.pipeline.runs_of("published")
            if isinstance(required.who, Lineage)
            and run.lineages.get(required.partition, 0) == required.who.number
            and (required.told is None or run.planned.index < required.told)
        )

    def _may_be_missing(self, number: int) -> bool:
        if not self.tally.can_be_seen(number):
            return True
        return self.pipeline.declared.on_data_loss == "skip" and self.sources.is_gone(number)

    def _of_sums(self, required: list[Required]) -> None:
        """Nobody can tell who has handled a record, only how often it has to be handled, and may be."""
        needed: dict[int, int] = defaultdict(int)
        topic = self.sources.topics[self.pipeline.declared.source]
        for partition, start, end in _spans(required):
            for _, number in topic[partition].between(start, end):
                needed[number] += 1
        for placed in topic.values():
            for offset, number in placed.between(0):
                times = self.tally.times(None, number)
                if times < needed.get(number, 0) and not self._may_be_missing(number):
                    said = f"handled {times:g} times, and has to be at least {needed[number]} times"
                    self._say("lost", said, number)
                if self.pipeline.declared.exactly_once and times > (allowed := self._allowed(number, offset)):
                    self._say("doubled", f"handled {times:g} times, and may be {allowed} times", number)

    def _allowed(self, number: int, offset: int) -> int:
        partition, _ = self.sources.offset_in(number)
        runs = [run for run in self.pipeline.runs.values() if run.planned.holds(partition, offset)]
        lineages = {run.lineages.get(partition, 0) for run in runs if run.is_live}
        windows = [run for run in runs if run.kind in ("backfill", "published")]
        redriven = self.tally.fate(number) == "dead" and any(self.pipeline.runs_of("redrive"))
        return len(lineages) + len(windows) + redriven

    def _places(self, number: int) -> int:
        return 1 + len(self.sources.again.get(number, ()))

    def _say(self, kind: str, said: str, number: int) -> None:
        self.anomalies.add(kind, self.pipeline.name, said, self.sources.said(number))


def _spans(required: list[Required]) -> Iterator[tuple[int, int, int | None]]:
    """Partition, start and end; those of one lineage, or of one run, do not overlap."""
    by: dict[tuple[int, int | str], list[Required]] = defaultdict(list)
    for each in required:
        by[each.partition, each.who.key if isinstance(each.who, Run) else each.who.number].append(each)
    for (partition, _), spans in by.items():
        start, end = 0, 0
        for each in sorted(spans, key=lambda span: span.start):
            if each.start > end:
                yield partition, start, end
                start, end = each.start, each.start
            if each.end is None:
                yield partition, start, None
                break
            end = max(end, each.end)
        else:
            yield partition, start, end
