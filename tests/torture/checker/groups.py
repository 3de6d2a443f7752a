"""Where groups stood: never beyond what was stored, never back by themselves, and in the end behind the last record."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.torture.checker.anomalies import Anomaly
from tests.torture.checker.dump import Cluster, Commit
from tests.torture.checker.events import GroupReset, GroupSeen
from tests.torture.checker.known import Known, Lineage, Pipeline
from tests.torture.checker.records import Required
from tests.torture.checker.sources import Sources

_STORED = re.compile(r"(\.backfill\..*)?\.kpipe(\.\d+)?")
# Brokers write down their own time of a commit, in whole milliseconds.
_SLACK = 1_000


@dataclass(frozen=True, slots=True)
class Step:
    """A commit to a pipeline's group, and in which lineage."""

    commit: Commit
    lineage: Lineage
    began: int
    """When the lineage did, by the broker's clock."""


class Groups:
    """One pipeline's group."""

    def __init__(self, known: Known, pipeline: Pipeline, sources: Sources, cluster: Cluster) -> None:
        self.known, self.pipeline, self.sources, self.cluster = known, pipeline, sources, cluster
        self.group, self.topic = pipeline.declared.group, pipeline.declared.source
        self.anomalies: list[Anomaly] = []
        self.steps = list(self._steps())

    def check(self) -> list[Anomaly]:
        self._beyond_stored()
        self._told()
        self._seen()
        self._in_the_end()
        return self.anomalies

    def _steps(self) -> Iterator[Step]:
        """Commits of checkpoints, which leave a mark beside the offset; whoever else moves a group leaves none."""
        by_partition: dict[int, list[Commit]] = defaultdict(list)
        for commit in self.cluster.commits:
            if (commit.group, commit.topic) == (self.group, self.topic):
                by_partition[commit.partition].append(commit)
        for partition, commits in by_partition.items():
            lineages, number, began, last = self.pipeline.lineages_of(partition), 0, 0, 0
            by_hand = sum(not each.metadata for each in commits)
            if by_hand != len(lineages) - 1:
                said = f"partition {partition}: {by_hand} commits without a mark, and {len(lineages) - 1} by hand"
                self._say("committed_backwards", said, {"offsets": [each.offset for each in commits][-20:]})
                continue
            for commit in commits:
                if not commit.metadata:
                    number, began, last = number + 1, commit.time, commit.offset or 0
                    continue
                if (commit.offset or 0) < last:
                    said = f"partition {partition} was committed back from {last} to {commit.offset}"
                    self._say("committed_backwards", said, {"mark": commit.metadata, "time": commit.time})
                last = commit.offset or 0
                yield Step(commit, lineages[number], began)

    def required(self) -> list[Required]:
        """Everything below a committed offset, below the end of a complete range, and in the end everything."""
        found = [
            Required(
                each.lineage,
                each.lineage.partition,
                each.lineage.base,
                each.commit.offset,
                f"the group was committed beyond it (lineage {each.lineage.number})",
            )
            for each in self._farthest()
        ]
        for told in self.pipeline.told:
            run = self.pipeline.runs[told.run]
            for each in told.partitions:
                partition = int(each["partition"])
                if each["complete"]:
                    who = self._lineage(partition, run.lineages.get(partition, 0)) if run.is_live else run
                    why = f"the checkpoint of {run.key} calls its range complete"
                    found.append(Required(who, partition, int(each["start"]), int(each["end"]), why, told.index))
        for partition in self.sources.topics[self.topic]:
            last = self.pipeline.lineages_of(partition)[-1]
            found.append(Required(last, partition, last.base, None, "all was to be read in the end"))
        return found

    def _farthest(self) -> list[Step]:
        farthest: dict[Lineage, Step] = {}
        for each in self.steps:
            before = farthest.get(each.lineage)
            if before is None or (each.commit.offset or 0) > (before.commit.offset or 0):
                farthest[each.lineage] = each
        return list(farthest.values())

    def _lineage(self, partition: int, number: int) -> Lineage:
        return self.pipeline.lineages_of(partition)[number]

    def _beyond_stored(self) -> None:
        stored: dict[int, list[Commit]] = defaultdict(list)
        for commit in self.cluster.commits:
            if commit.topic == self.topic and commit.offset is not None and self._is_progress(commit.group):
                stored[commit.partition].append(commit)
        for step in self.steps:
            offset, partition = step.commit.offset or 0, step.lineage.partition
            if self._has_nothing_before(step.lineage, offset):
                continue
            if not any(
                (each.offset or 0) >= offset and step.began - _SLACK <= each.time <= step.commit.time + _SLACK
                for each in stored[partition]
            ):
                said = f"partition {partition} was committed at {offset}, and nobody had stored that"
                self._say("committed_beyond_stored", said, {"mark": step.commit.metadata, "time": step.commit.time})

    def _is_progress(self, group: str) -> bool:
        return group.startswith(self.group) and _STORED.fullmatch(group, len(self.group)) is not None

    def _has_nothing_before(self, lineage: Lineage, offset: int) -> bool:
        """A group may be committed where it begins, and over what holds no record, without anything being stored."""
        placed = self.sources.topics[self.topic][lineage.partition]
        return next(placed.between(max(lineage.base, placed.low), offset), None) is None

    def _told(self) -> None:
        stood = {(each.group, each.partition, each.offset) for each in self.cluster.commits if each.topic == self.topic}
        for told in self.pipeline.told:
            group = self.pipeline.runs[told.run].planned.group
            for each in told.partitions:
                partition, offset = int(each["partition"]), each["committed"]
                if offset is not None and (group, partition, offset) not in stood:
                    said = f"the checkpoint of {told.run} tells of {offset} in partition {partition} of {group}"
                    self._say("told_untrue", said, {"line": told.index + 1})

    def _seen(self) -> None:
        """What an observer saw: a net below the coordinators' own log."""
        resets = [each for each in self.known.of(GroupReset) if each.group == self.group]
        before: dict[int, tuple[int, GroupSeen]] = {}
        for seen in self.known.of(GroupSeen):
            if (seen.group, seen.topic) != (self.group, self.topic):
                continue
            for partition, offset in seen.committed.items():
                last, when = before.get(partition, (offset, seen))
                if offset < last and not _between(resets, partition, when.looked, seen.at):
                    said = f"partition {partition} was seen to go back from {last} to {offset}"
                    self._say("committed_backwards", said, {"lines": [when.index + 1, seen.index + 1]})
                before[partition] = offset, seen
            for partition in before.keys() - seen.committed.keys():
                last, when = before.pop(partition)
                if not _between(resets, partition, when.looked, seen.at):
                    said = f"partition {partition} was seen at {last}, and then nowhere"
                    self._say("committed_backwards", said, {"lines": [when.index + 1, seen.index + 1]})
            self._seen_beyond(seen, resets)

    def _seen_beyond(self, seen: GroupSeen, resets: list[GroupReset]) -> None:
        if seen.stored is None:
            return
        for partition, offset in seen.committed.items():
            windows = (run.planned.ranges.get(partition, (0, 0))[1] for run in self.pipeline.runs_of("published"))
            most = max([seen.stored.get(partition, 0), *windows])
            lineages = self.pipeline.lineages_of(partition)
            if offset <= most or any(self._has_nothing_before(each, offset) for each in lineages):
                continue
            if not _between(resets, partition, seen.looked - 1, seen.at):
                said = f"partition {partition} was seen committed at {offset}, and stored at {most}"
                self._say("committed_beyond_stored", said, {"line": seen.index + 1})

    def _in_the_end(self) -> None:
        held: Mapping[int, int] = self.cluster.committed.get(self.group, {}).get(self.topic, {})
        for partition, placed in self.sources.topics[self.topic].items():
            if held.get(partition, 0) < placed.behind_last:
                last = placed.behind_last - 1
                self._say(
                    "not_drained", f"partition {partition} is at {held.get(partition)}, its last record {last}", {}
                )

    def _say(self, kind: str, said: str, evidence: Mapping[str, object]) -> None:
        self.anomalies.append(Anomaly(kind, self.pipeline.name, f"group {self.group}: {said}", evidence))


def _between(resets: list[GroupReset], partition: int, after: float, before: float) -> bool:
    return any(partition in each.offsets and each.at >= after and each.began <= before for each in resets)
