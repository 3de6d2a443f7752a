"""Whether partitions are drained: what a group has committed, against a target."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from airflow_provider_kpipe.contract.offsets import At, Explicit, Latest, OffsetLimit
from airflow_provider_kpipe.contract.plan import IsolationLevel
from airflow_provider_kpipe.contract.strict_json import Document
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.kafka.positions import Positions, Topic


@dataclass(frozen=True, slots=True)
class DrainTarget(Document):
    """What has to be committed: up to offsets, up to a moment, or, with neither, up to the end as it is now."""

    SCHEMA_VERSION: ClassVar[int] = 1

    group: str
    topic: str
    isolation_level: IsolationLevel
    offsets: Mapping[int, int] | None
    timestamp_ms: int | None
    partitions: tuple[int, ...] | None

    @classmethod
    def of(
        cls,
        until: OffsetLimit,
        *,
        group: str,
        topic: str,
        isolation_level: IsolationLevel,
        partitions: tuple[int, ...] | None,
    ) -> DrainTarget:
        offsets, timestamp_ms = None, None
        match until:
            case Explicit(named):
                offsets = named
            case At(moment):
                timestamp_ms = moment
            case Latest():
                pass
            case _:
                raise ValueError(f"until={until!r}: use 'latest', a moment, an offset per partition, or a plan")
        # A gate over nothing would be open at once.
        for name, asked in (("partitions", partitions), ("until", offsets)):
            if asked is not None and not asked:
                raise ValueError(f"{name} is empty, and names no partition: name some, or leave it out")
        return cls(group, topic, isolation_level, offsets, timestamp_ms, partitions)

    @property
    def until(self) -> OffsetLimit:
        if self.offsets is not None:
            return Explicit(self.offsets)
        return Latest() if self.timestamp_ms is None else At(self.timestamp_ms)


@dataclass(frozen=True, slots=True)
class PartitionDrain:
    """One partition: where the group is, and where it has to be."""

    partition: int
    committed: int
    target: int
    settled: bool = True
    """False while the moment to drain up to lies ahead: records from before it may still come."""

    @property
    def drained(self) -> bool:
        return self.settled and self.committed >= self.target


def look(settings: Mapping[str, str], target: DrainTarget, *, answer_seconds: float = 10.0) -> list[PartitionDrain]:
    """Where each partition stands now. The end of the log is the end as it is at this moment."""
    with Positions(settings, answer_seconds=answer_seconds) as positions:
        topic = positions.topic(target.topic)
        ends = _ends(positions, target, topic)
        wanted = sorted(ends) if target.partitions is None else target.partitions
        for partition in wanted:
            if partition not in topic.partitions:
                raise PlanError(
                    f"partition {partition} is not in topic {topic.name!r}, which has partitions 0 to "
                    f"{max(topic.partitions)}: leave it out of `partitions` and `until`"
                )
            if partition not in ends:
                raise PlanError(
                    f"partition {partition} of {topic.name!r} has no target: `until` names {sorted(ends)}, and "
                    "`partitions` may name only these"
                )
        committed = positions.group_offsets(target.group, target.topic, wanted)
        first = positions.earliest(topic, target.isolation_level)
    settled = target.timestamp_ms is None or target.timestamp_ms <= time.time() * 1000
    return [
        # Without a committed offset a partition counts as read up to where its log starts.
        PartitionDrain(each, committed[each].offset if each in committed else first[each], ends[each], settled)
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
    """For XCom."""
    return {str(each.partition): {"committed": each.committed, "target": each.target} for each in drains}
