"""Counts what has come out: of each run, how often each record, and as what. Streams the topics once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.torture.checker.anomalies import Gathered
from tests.torture.checker.dump import Header, Row, committed_file, read_rows
from tests.torture.checker.known import Pipeline, Run
from tests.torture.checker.order import Order
from tests.torture.checker.sources import Sources

RUN_HEADER = "torture-run"
LETTER_RUN_HEADER = "kpipe-run-key"
FAULT_KIND_HEADER = "kpipe-fault-kind"
UNTOLD = ""
"""The run of outputs that do not say it."""
# Whoever is killed twice over a record alone is thought to die of it.
_BLAMED = {"crash"}
_STAMPS = {RUN_HEADER, "kpipe-source-topic", "kpipe-source-partition", "kpipe-source-offset"}


def _counters() -> dict[str, dict[int, int]]:
    return defaultdict(dict)


@dataclass(slots=True)
class Tally:
    """By run and id. Anomalies that a single record shows are gathered on the way."""

    pipeline: Pipeline
    sources: Sources
    outputs: dict[str, dict[int, int]] = field(default_factory=_counters)
    letters: dict[str, dict[int, int]] = field(default_factory=_counters)
    blamed: set[int] = field(default_factory=set)
    """Records that became dead letters because processes ended over them, which a torture does by itself."""
    anomalies: Gathered = field(default_factory=Gathered)

    @classmethod
    def read(cls, folder: Path, pipeline: Pipeline, sources: Sources) -> Tally:
        tally = cls(pipeline, sources)
        declared = pipeline.declared
        order = Order(pipeline, sources, tally.anomalies) if declared.ordered else None
        for row in read_rows(committed_file(folder, declared.destination)):
            tally._output(row, order)
        if declared.dead_letter:
            for row in read_rows(committed_file(folder, declared.dead_letter)):
                tally._letter(row)
        return tally

    def times(self, run: Run | None, number: int) -> float:
        """How often a run has handled a record, as far as it can be seen. Without a run: all who do not say theirs."""
        key = run.key if run else UNTOLD
        outputs = self.outputs[key].get(number, 0) if key in self.outputs else 0
        letters = self.letters[key].get(number, 0) if key in self.letters else 0
        fate = self.fate(number, run)
        return letters + (outputs / fate if isinstance(fate, int) and fate else outputs)

    def fate(self, number: int, run: Run | None = None) -> int | str:
        return self.pipeline.fate(self.sources.kinds.get(number, "good"), run)

    def can_be_seen(self, number: int, run: Run | None = None) -> bool:
        """Whether a record leaves something behind."""
        return self.fate(number, run) != 0

    def total(self, counters: Mapping[str, Mapping[int, int]], run: str) -> int:
        return sum(counters.get(run, {}).values())

    def _output(self, row: Row, order: Order | None) -> None:
        place = f"{self.pipeline.declared.destination}-{row.partition}-{row.offset}"
        number, run = self._identified(row, row.header(RUN_HEADER) if self.pipeline.declared.tells_run else UNTOLD)
        if number is None:
            return
        counted = self.outputs[run.key if run else UNTOLD]
        counted[number] = counted.get(number, 0) + 1
        if self.fate(number, run) in (0, "dead"):
            kind = self.sources.kinds.get(number, "unknown")
            self.anomalies.add("wrong_fate", self.pipeline.name, f"a {kind} record came out", [number, place])
        self._compare(row, number, place)
        if order:
            order.note(row.partition, number, run, place)

    def _compare(self, row: Row, number: int, place: str) -> None:
        declared, name = self.pipeline.declared, self.pipeline.name
        if number in self.sources.again or self.sources.is_gone(number):
            return
        if declared.keeps_value and not self.sources.has_digest(number, row.digest):
            self.anomalies.add("altered", name, "an output has another value than its record", [number, place])
        if declared.keeps_headers and not self.sources.has_headers(number, _own(row.headers)):
            self.anomalies.add("altered", name, "an output has other headers than its record", [number, place])

    def _letter(self, row: Row) -> None:
        number, run = self._identified(row, row.header(LETTER_RUN_HEADER))
        if number is None or run is None:
            return
        counted = self.letters[run.key if self.pipeline.declared.tells_run else UNTOLD]
        counted[number] = counted.get(number, 0) + 1
        if row.header(FAULT_KIND_HEADER) in _BLAMED:
            self.blamed.add(number)
        elif self.fate(number, run) != "dead":
            kind, fault = self.sources.kinds.get(number, "unknown"), row.header("kpipe-fault-exception")
            said = f"a {kind} record became a dead letter of {fault}"
            self.anomalies.add("wrong_fate", self.pipeline.name, said, [number, f"letter {row.partition}-{row.offset}"])

    def _identified(self, row: Row, key: str | None) -> tuple[int | None, Run | None]:
        """The id, if it is one that may have come out; the run, if it says one."""
        name, number = self.pipeline.name, row.id
        if number is None or not self.sources.is_visible(number):
            if number is not None and number in self.sources.aborted:
                said = "a record of an aborted transaction was handled"
                self.anomalies.add("aborted_read", name, said, [number, key, row.partition, row.offset])
            elif number is None or number not in self.sources.maybe:
                said = "there is no such record in the source"
                self.anomalies.add("no_source", name, said, [row.key, key, row.partition, row.offset])
            return None, None
        if key == UNTOLD:
            return number, None
        run = self.pipeline.runs.get(key or "")
        if run is None:
            self.anomalies.add("no_run", name, f"no run {key!r} was planned", [number, row.partition, row.offset])
            return None, None
        if run.kind != "redrive" and not any(
            run.planned.holds(place.partition, place.offset)
            for place in self.sources.places(number)
            if place.topic == run.planned.topic
        ):
            self.anomalies.add("no_run", name, f"{key} has handled what is not in its plan", self.sources.said(number))
        return number, run


def _own(headers: Sequence[Header]) -> list[Header]:
    return [each for each in headers if each[0] not in _STAMPS]
