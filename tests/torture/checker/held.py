"""Readers of committed records are held up by an open transaction no longer than promised after a failed run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from tests.torture.checker.anomalies import Anomaly
from tests.torture.checker.dump import Cluster
from tests.torture.checker.events import FaultBegun, FaultEnded, StableSeen, TaskBegun, TaskEnded
from tests.torture.checker.known import Known

PROMISED = 2.5
# Coordinators and leaders move on, and clients notice it later.
AFTERMATH, AFTERMATH_OF_BROKERS = 1.5, 5.0
# In its last seconds, a run ends its transactions.
CLEANING = 3.0
# Between two samples, nobody knows what readers saw.
MOST_BLIND = 1.0


@dataclass(frozen=True, slots=True)
class Hold:
    """A partition's readers saw no further than `offset` all the time, and there was more."""

    topic: str
    partition: int
    offset: int
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Work:
    """A task that writes, from its beginning to its end."""

    pipeline: str
    run: str
    since: float
    until: float
    outcome: str


@dataclass(frozen=True, slots=True)
class Held:
    """How long readers were held up after failed runs."""

    anomalies: list[Anomaly]
    judged: int
    """Failed runs with no outage around their end."""
    excused: int
    unseen: int
    """Failed runs after which the observer saw nothing."""
    longest: float
    """Seconds after a failed run, outside of outages."""


def check_held(known: Known, cluster: Cluster) -> Held:
    holds, works, outages = list(holds_of(known)), list(_works(known)), list(_outages(known))
    anomalies, judged, excused, unseen, longest = list(_in_the_end(known, cluster)), 0, 0, 0, 0.0
    looks = _looks(known)
    for freed, work in _failures(known, works):
        if any(since - PROMISED < freed < until + CLEANING for since, until in outages):
            excused += 1
            continue
        if not _is_seen(looks[known.pipelines[work.pipeline].declared.destination], freed):
            unseen += 1
            continue
        judged += 1
        for hold in holds:
            if hold.topic not in _written(known, work.pipeline) or not hold.since < freed < hold.until:
                continue
            if _is_anothers(known, hold, work, works):
                continue
            until = min([hold.until, *(since for since, _ in outages if since > freed)])
            longest = max(longest, until - freed)
            if until - freed > PROMISED:
                said = (
                    f"{hold.topic}-{hold.partition} was held up at {hold.offset} for {until - freed:.1f} s "
                    f"after run {work.run} had {work.outcome}"
                )
                evidence = {"since": hold.since, "failed": freed, "until": until}
                anomalies.append(Anomaly("held_up", work.pipeline, said, evidence))
    return Held(anomalies, judged, excused, unseen, longest)


def holds_of(known: Known) -> Iterator[Hold]:
    """Spans between samples that saw the same: what began or ended between two of them is not counted in."""
    open_: dict[tuple[str, int], Hold] = {}
    for seen in known.of(StableSeen):
        for partition, stable in seen.stable.items():
            at = seen.topic, partition
            hold = open_.get(at)
            if hold and (hold.offset != stable or seen.ends[partition] <= stable):
                yield open_.pop(at)
                hold = None
            if seen.ends[partition] > stable:
                since = hold.since if hold else seen.at
                open_[at] = Hold(seen.topic, partition, stable, since, max(seen.looked, since))
    yield from open_.values()


def _works(known: Known) -> Iterator[Work]:
    begun: dict[tuple[str, str, str, int], TaskBegun] = {}
    for event in known.events:
        if isinstance(event, TaskBegun) and event.task in ("run", "redrive"):
            begun[event.pipeline, event.run, event.task, event.attempt] = event
        elif isinstance(event, TaskEnded):
            first = begun.pop((event.pipeline, event.run, event.task, event.attempt), None)
            if first:
                yield Work(event.pipeline, event.run, first.at, event.at, event.outcome)
    for left in begun.values():
        yield Work(left.pipeline, left.run, left.at, inf, "not ended")


def _failures(known: Known, works: list[Work]) -> Iterator[tuple[float, Work]]:
    """When everything should be free: a task that is killed outright leaves that to its checkpoint."""
    checkpoints: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in known.of(TaskEnded):
        if event.task == "checkpoint" and event.outcome in ("success", "failed"):
            checkpoints[event.pipeline, event.run].append(event.at)
    for work in works:
        if work.outcome == "failed":
            yield work.until, work
        elif work.outcome == "killed":
            for freed in checkpoints[work.pipeline, work.run]:
                if freed > work.until:
                    yield freed, work
                    break


def _outages(known: Known) -> Iterator[tuple[float, float]]:
    """With what comes after them."""
    ended = {each.fault: each.at for each in known.of(FaultEnded)}
    for each in known.of(FaultBegun):
        if each.outage:
            aftermath = AFTERMATH_OF_BROKERS if each.kind.endswith("broker") else AFTERMATH
            yield each.at, ended.get(each.fault, inf) + aftermath


def _looks(known: Known) -> dict[str, list[float]]:
    looks: dict[str, list[float]] = defaultdict(list)
    for each in known.of(StableSeen):
        looks[each.topic].append(each.at)
    return looks


def _is_seen(looks: list[float], freed: float) -> bool:
    """Whether there is no gap from before the end of a run until readers have to see on."""
    around = [at for at in looks if freed - MOST_BLIND < at < freed + PROMISED + MOST_BLIND]
    if not around or around[0] > freed or around[-1] < freed + PROMISED:
        return False
    return all(later - earlier < MOST_BLIND for earlier, later in pairwise(around))


def _written(known: Known, pipeline: str) -> set[str | None]:
    declared = known.pipelines[pipeline].declared
    return {declared.destination, declared.dead_letter}


def _is_anothers(known: Known, hold: Hold, failed: Work, works: list[Work]) -> bool:
    """Whether another task that writes there was at work when it began: it may be its chunk."""
    return any(
        each != failed and each.since <= hold.since <= each.until and hold.topic in _written(known, each.pipeline)
        for each in works
    )


def _in_the_end(known: Known, cluster: Cluster) -> Iterator[Anomaly]:
    for name, pipeline in known.pipelines.items():
        for topic in (pipeline.declared.destination, pipeline.declared.dead_letter):
            for partition, ends in cluster.ends.get(topic or "", {}).items():
                if ends.stable < ends.high:
                    said = f"{topic}-{partition} is held up at {ends.stable} in the end, of {ends.high}"
                    yield Anomaly("held_up", name, said)
