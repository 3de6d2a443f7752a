"""Comparison of a group's committed offsets with a target: it has drained the partitions that have reached it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.contract.progress.standing import Facts
from airflow_provider_kpipe.exceptions import PlanError, StalePlanError
from airflow_provider_kpipe.kafka.positions import Positions, Topic
from airflow_provider_kpipe.planning.plan_check import check_in_log

LOOK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class PartitionDrain:
    """One partition: the offset that the group has committed, and the one that it has to reach."""

    partition: int
    committed: int
    target: int
    settled: bool = True
    """False while the moment to drain up to is in the future: records from before it may still arrive."""

    @property
    def drained(self) -> bool:
        return self.settled and self.committed >= self.target


def look(settings: Mapping[str, str], target: DrainTarget, plan: Plan | None = None) -> list[PartitionDrain]:
    """Look once, with clients of its own. A plan that is waited for has to match the topic as it is now."""
    with Positions(settings, answer_seconds=LOOK_SECONDS) as positions:
        if plan is not None:
            check_in_log(positions, plan)
        return look_at(positions, target)


def look_at(positions: Positions, target: DrainTarget) -> list[PartitionDrain]:
    """Return each partition's committed offset and target. The end of the log is the end at this moment."""
    topic = positions.topic(target.topic)
    if target.topic_id not in ("", topic.id):
        raise StalePlanError(
            f"topic {topic.name!r} was re-created since the plan was made that is waited for: start a new run"
        )
    ends = _ends(positions, target, topic)
    wanted = sorted(ends) if target.partitions is None else target.partitions
    known = set(topic.partitions)
    for partition in wanted:
        if partition not in known:
            raise PlanError(
                f"partition {partition} is not in topic {topic.name!r}, which has partitions 0 to "
                f"{max(known)}: leave it out of `partitions` and `until`"
            )
        if partition not in ends:
            raise PlanError(
                f"partition {partition} of {topic.name!r} has no target: `until` names {sorted(ends)}, and "
                "`partitions` may name only these"
            )
    held = {at: each.held for at, each in positions.group_offsets(target.group, target.topic, wanted).items()}
    first = positions.earliest(topic, target.isolation_level)
    settled = target.timestamp_ms is None or target.timestamp_ms <= time.time() * 1000
    return [
        PartitionDrain(each, target.position(Facts(topic.id, held.get(each)), first[each]), ends[each], settled)
        for each in wanted
    ]


def _ends(positions: Positions, target: DrainTarget, topic: Topic) -> Mapping[int, int]:
    if target.offsets is not None:
        return target.offsets
    latest = positions.latest(topic, target.isolation_level)
    if target.timestamp_ms is None:
        return latest
    return positions.at(topic, target.timestamp_ms, target.isolation_level, latest)


def summary(drains: Sequence[PartitionDrain]) -> dict[str, Any]:
    """Return the committed offset and the target of each partition, for XCom."""
    return {str(each.partition): {"committed": each.committed, "target": each.target} for each in drains}
