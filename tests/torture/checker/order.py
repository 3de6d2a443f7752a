"""Order within a partition: of each lineage, and of each run by itself, what comes out first is what was read first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from tests.torture.checker.anomalies import Gathered
from tests.torture.checker.known import Pipeline, Run
from tests.torture.checker.sources import Sources


class Order:
    """Only the first time that a record comes out counts: in at least once, a chunk that is redone comes again."""

    def __init__(self, pipeline: Pipeline, sources: Sources, anomalies: Gathered) -> None:
        self._pipeline, self._sources, self._anomalies = pipeline, sources, anomalies
        self._seen: dict[Hashable, set[int]] = defaultdict(set)
        self._last: dict[Hashable, int] = {}
        runs = pipeline.runs.values()
        self._alone = all(run.is_live for run in runs) and not pipeline.lineages

    def note(self, written_to: int, number: int, run: Run | None, place: str) -> None:
        partition, offset = self._sources.offset_in(number)
        scope = self._scope(run, partition)
        if scope is None or number in self._sources.again or number in (seen := self._seen[scope]):
            return
        seen.add(number)
        way = (scope, written_to, partition)
        last = self._last.get(way, -1)
        if offset < last:
            said = f"offset {offset} of partition {partition} came out behind {last} ({scope})"
            self._anomalies.add("reordered", self._pipeline.name, f"partition {partition}", [said, number, place])
        else:
            self._last[way] = offset

    def _scope(self, run: Run | None, partition: int) -> Hashable:
        """Those who follow each other; None where nobody can tell, or has to keep order."""
        if run is None:
            return "all" if self._alone else None
        if run.kind == "redrive":
            return None
        return f"lineage {run.lineages.get(partition, 0)}" if run.is_live else f"run {run.key}"
