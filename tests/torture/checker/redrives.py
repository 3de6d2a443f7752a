"""Redrives: each record goes back once, over all redrives of a pipeline, and is counted."""

from __future__ import annotations

from collections.abc import Iterator

from tests.torture.checker.anomalies import Anomaly, Gathered
from tests.torture.checker.known import Pipeline
from tests.torture.checker.sources import Sources
from tests.torture.checker.tally import Tally


def check_redrives(pipeline: Pipeline, sources: Sources, tally: Tally) -> Iterator[Anomaly]:
    """Only those that write to the destination can be told apart from the runs of a pipeline."""
    if pipeline.declared.tells_run:
        yield from _once(pipeline, sources, tally)
        yield from _told(pipeline, tally)


def _once(pipeline: Pipeline, sources: Sources, tally: Tally) -> Iterator[Anomaly]:
    anomalies = Gathered()
    dead = {number for run in pipeline.runs.values() for number in tally.letters.get(run.key, ())}
    times: dict[int, float] = {}
    for run in pipeline.runs_of("redrive"):
        for number, count in tally.outputs.get(run.key, {}).items():
            fate = tally.fate(number, run)
            times[number] = times.get(number, 0) + (count / fate if isinstance(fate, int) and fate else count)
    for number, often in times.items():
        if often > len(sources.places(number)):
            anomalies.add("redriven_twice", pipeline.name, f"redriven {often:g} times", sources.said(number))
        if number not in dead:
            said = "a record without a dead letter was redriven"
            anomalies.add("redriven_twice", pipeline.name, said, sources.said(number))
    yield from anomalies


def _told(pipeline: Pipeline, tally: Tally) -> Iterator[Anomaly]:
    for told in pipeline.redriven:
        written, dead = tally.total(tally.outputs, told.run), tally.total(tally.letters, told.run)
        if told.complete and (told.written, told.dead_lettered) != (written, dead):
            said = f"the redrive {told.run} counts {told.written} written and {told.dead_lettered} dead again"
            yield Anomaly("counts", pipeline.name, f"{said}: {written} and {dead} have come out")
