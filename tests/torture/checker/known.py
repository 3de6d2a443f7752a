"""A history in order: who was declared, what was planned, and in which lineage.

Somebody who resets or deletes a group has its records read again from there: that begins a lineage. Within a lineage,
and within a run of its own such as a backfill, each record is handled once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.torture.checker.events import (
    CheckpointTold,
    Declared,
    Event,
    Fate,
    GroupReset,
    LogStartMoved,
    Planned,
    Produced,
    RedriveTold,
)

SomeEvent = TypeVar("SomeEvent", bound=Event)


@dataclass(frozen=True, slots=True)
class Lineage:
    """The live runs of a partition that follow each other from where somebody has put the group."""

    partition: int
    number: int
    base: int
    """0 for a group that was new, or deleted."""


@dataclass(frozen=True, slots=True)
class Run:
    """One plan, and the lineages in which it was made."""

    planned: Planned
    lineages: Mapping[int, int]
    """The number of the lineage, by partition."""
    fates: Mapping[str, Fate]

    @property
    def key(self) -> str:
        return self.planned.run

    @property
    def kind(self) -> str:
        return self.planned.kind

    @property
    def is_live(self) -> bool:
        return self.kind == "live"

    def is_in(self, lineage: Lineage) -> bool:
        return self.is_live and self.lineages.get(lineage.partition, 0) == lineage.number


@dataclass(slots=True)
class Pipeline:
    """One pipeline and everything that was done with it."""

    declared: Declared
    runs: dict[str, Run] = field(default_factory=dict)
    lineages: dict[int, list[Lineage]] = field(default_factory=dict)
    """By partition, those that were begun by hand."""
    told: list[CheckpointTold] = field(default_factory=list)
    redriven: list[RedriveTold] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.declared.pipeline

    def lineages_of(self, partition: int) -> Sequence[Lineage]:
        return [Lineage(partition, 0, 0), *self.lineages.get(partition, ())]

    def runs_of(self, kind: str) -> Iterator[Run]:
        return (run for run in self.runs.values() if run.kind == kind)

    def fate(self, kind: str, run: Run | None = None) -> Fate:
        return (run.fates if run else self.declared.fates)[kind]


class Known:
    """Everything in a history that is about records and offsets."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = list(events)
        self.pipelines: dict[str, Pipeline] = {}
        for event in self.events:
            self._note(event)

    def _note(self, event: Event) -> None:
        match event:
            case Declared():
                self.pipelines[event.pipeline] = Pipeline(event)
            case Planned():
                self._plan(self.pipelines[event.pipeline], event)
            case GroupReset():
                for pipeline in self.pipelines.values():
                    if (pipeline.declared.group, pipeline.declared.source) == (event.group, event.topic):
                        self._reset(pipeline, event)
            case CheckpointTold():
                self.pipelines[event.pipeline].told.append(event)
            case RedriveTold():
                self.pipelines[event.pipeline].redriven.append(event)

    def _plan(self, pipeline: Pipeline, planned: Planned) -> None:
        lineages = {each: len(pipeline.lineages.get(each, ())) for each in planned.ranges}
        pipeline.runs[planned.run] = Run(planned, lineages, planned.fates or pipeline.declared.fates)

    def _reset(self, pipeline: Pipeline, reset: GroupReset) -> None:
        for partition, offset in reset.offsets.items():
            begun = pipeline.lineages.setdefault(partition, [])
            begun.append(Lineage(partition, len(begun) + 1, offset or 0))

    def of(self, kind: type[SomeEvent]) -> Iterator[SomeEvent]:
        return (each for each in self.events if isinstance(each, kind))

    @property
    def sources(self) -> list[str]:
        return list(dict.fromkeys(each.declared.source for each in self.pipelines.values()))

    @property
    def produced(self) -> list[Produced]:
        return list(self.of(Produced))

    def log_start(self, topic: str, partition: int) -> int:
        """The highest offset to which the start of the log was moved, as far as the history knows."""
        moved = (each.offset for each in self.of(LogStartMoved) if (each.topic, each.partition) == (topic, partition))
        return max(moved, default=0)
