"""What checkpoints count, beside what lies in the topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.torture.checker.anomalies import Anomaly
from tests.torture.checker.events import CheckpointTold
from tests.torture.checker.known import Known, Pipeline, Run
from tests.torture.checker.sources import Sources
from tests.torture.checker.tally import Tally


@dataclass(frozen=True, slots=True)
class Counted:
    read: int = 0
    written: int = 0
    dead_lettered: int = 0
    filtered: int = 0

    @classmethod
    def told(cls, partition: Mapping[str, Any]) -> Counted:
        counts = partition.get("counts", partition)
        return cls(*(int(counts[name]) for name in ("read", "written", "dead_lettered", "filtered")))

    def exceeds(self, other: Counted) -> bool:
        return (
            self.read > other.read
            or self.written > other.written
            or self.dead_lettered > other.dead_lettered
            or self.filtered > other.filtered
        )

    def __str__(self) -> str:
        return f"{self.read} read, {self.written} written, {self.dead_lettered} dead, {self.filtered} filtered"


class Counts:
    """One pipeline's."""

    def __init__(self, known: Known, pipeline: Pipeline, sources: Sources, tally: Tally) -> None:
        self.known, self.pipeline, self.sources, self.tally = known, pipeline, sources, tally

    def check(self) -> Iterator[Anomaly]:
        for told in self.pipeline.told:
            yield from self._green(told)
            run = self.pipeline.runs[told.run]
            for each in told.partitions:
                wrong = self._wrong(run, told, each)
                if wrong:
                    said = f"{run.kind} run {run.key}, partition {each['partition']}: {Counted.told(each)}; {wrong}"
                    yield Anomaly("counts", self.pipeline.name, said, {"line": told.index + 1, "told": dict(each)})
        yield from self._in_all()

    def _green(self, told: CheckpointTold) -> Iterator[Anomaly]:
        if not told.green:
            return
        run = self.pipeline.runs[told.run]
        partitions = {int(each["partition"]): each for each in told.partitions}
        for partition, (start, end) in run.planned.ranges.items():
            each = partitions.get(partition)
            if each is None:
                wrong = "is not told of"
            elif not each["complete"]:
                wrong = "is not complete"
            elif run.is_live and (each["committed"] is None or each["committed"] < end):
                wrong = f"is at {each['committed']} only"
            else:
                continue
            said = f"the checkpoint of {run.key} succeeded, and partition {partition} [{start}, {end}) {wrong}"
            yield Anomaly("incomplete_under_green", self.pipeline.name, said, {"line": told.index + 1})

    def _wrong(self, run: Run, told: CheckpointTold, each: Mapping[str, Any]) -> str | None:
        counted, partition = Counted.told(each), int(each["partition"])
        start, end = run.planned.ranges[partition]
        if self._cannot_know(partition, start, each):
            return None
        if not run.is_live:
            there = self.sum_of(partition, start, end, run)
            if counted.exceeds(there) or (each["complete"] and counted != there):
                return f"its range holds {there}"
            return None
        lineage = self.pipeline.lineages_of(partition)[run.lineages.get(partition, 0)]
        # It tells of a run that it took over, too, whose plan may have gone further.
        end = max(end, each["committed"] or 0)
        there = self.sum_of(partition, lineage.base, end, run)
        if counted.exceeds(there):
            return f"there are no more than {there}"
        if each["complete"] and not self._has_rival(run, told, partition):
            return self._of_complete(run, partition, counted, lineage.base, end)
        return None

    def _of_complete(self, run: Run, partition: int, counted: Counted, base: int, end: int) -> str | None:
        """Own work, and what runs before it have done of which no checkpoint has told."""
        own = self._own(run, partition)
        if Counted(written=own.written, dead_lettered=own.dead_lettered).exceeds(counted):
            return f"it has made {own.written} outputs and {own.dead_lettered} dead letters itself"
        if not self.pipeline.declared.ordered or self._windows:
            return None
        offsets = [offset for offset, _ in self.sources.topics[run.planned.topic][partition].between(base, end)]
        begin = offsets[-counted.read] if counted.read else end
        if counted != (last := self.sum_of(partition, begin, end, run)):
            return f"the last {counted.read} records before {end} make {last}"
        return None

    def _own(self, run: Run, partition: int) -> Counted:
        if not self.pipeline.declared.tells_run or not self.pipeline.declared.exactly_once:
            return Counted()
        written, dead = (
            sum(times for number, times in tally.get(run.key, {}).items() if self._is_in(number, partition))
            for tally in (self.tally.outputs, self.tally.letters)
        )
        return Counted(written=written, dead_lettered=dead)

    def _is_in(self, number: int, partition: int) -> bool:
        return self.sources.offset_in(number)[0] == partition

    def _cannot_know(self, partition: int, start: int, each: Mapping[str, Any]) -> bool:
        """Records have left the log, or were skipped or blamed for a death that the torture has caused."""
        topic = self.pipeline.declared.source
        moved = max(self.known.log_start(topic, partition), self.sources.topics[topic][partition].low)
        counts = each.get("counts", each)
        blamed = any(self._is_in(number, partition) for number in self.tally.blamed)
        return bool(moved > start or blamed or counts.get("skipped"))

    def _has_rival(self, run: Run, told: CheckpointTold, partition: int) -> bool:
        """Whether a later run of the lineage was planned by then: it may have taken the partition over."""
        return any(
            other.is_live and other.planned.number > run.planned.number and other.planned.index < told.index
            for other in self.pipeline.runs.values()
            if partition in other.planned.ranges
        )

    @property
    def _windows(self) -> Sequence[Run]:
        return list(self.pipeline.runs_of("published"))

    def sum_of(self, partition: int, start: int, end: int, run: Run) -> Counted:
        read = written = dead = filtered = 0
        for _, number in self.sources.topics[self.pipeline.declared.source][partition].between(start, end):
            fate = self.tally.fate(number, run)
            read += 1
            if isinstance(fate, int):
                written += fate
                filtered += not fate
            else:
                dead += 1
        return Counted(read, written, dead, filtered)

    def _in_all(self) -> Iterator[Anomaly]:
        """In exactly once, checkpoints of live runs tell of no record twice.

        A run that takes a partition on while the checkpoint of an earlier one is under way inherits counts that it
        tells of, and so does one that takes over from a run which has gone on after its checkpoint.
        """
        if not self.pipeline.declared.exactly_once or self.tally.blamed:
            return
        most: dict[tuple[int, int, str], int] = {}
        overlapping: set[tuple[int, int]] = set()
        for told in self.pipeline.told:
            run = self.pipeline.runs[told.run]
            for each in told.partitions if run.is_live else ():
                partition = int(each["partition"])
                key = (partition, run.lineages.get(partition, 0), run.key)
                if self._has_rival(run, told, partition):
                    overlapping.add(key[:2])
                most[key] = max(most.get(key, 0), Counted.told(each).read)
        sums: dict[tuple[int, int], int] = {}
        for (partition, lineage, _), read in most.items():
            sums[partition, lineage] = sums.get((partition, lineage), 0) + read
        topic = self.pipeline.declared.source
        for (partition, lineage), read in sums.items():
            base = self.pipeline.lineages_of(partition)[lineage].base
            there = sum(1 for _ in self.sources.topics[topic][partition].between(base))
            if read > there and (partition, lineage) not in overlapping:
                runs = {run: read for (at, number, run), read in most.items() if (at, number) == (partition, lineage)}
                said = f"checkpoints have told of {read} records of partition {partition}, which holds {there}"
                yield Anomaly("counts", self.pipeline.name, said, {"lineage": lineage, "runs": runs})
