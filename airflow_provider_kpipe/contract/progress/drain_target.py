"""The target that a gate waits for; it crosses to the triggerer while the gate is deferred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from airflow_provider_kpipe.contract.documents import Document
from airflow_provider_kpipe.contract.offsets.limits import At, Explicit, Latest, OffsetLimit, check_partitions
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.pipeline.declaration import IsolationLevel
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.standing import Facts


@dataclass(frozen=True, slots=True)
class DrainTarget(Document):
    """The target of a group's commits: given offsets, a moment or, with neither, the end of the log as it is now."""

    SCHEMA_VERSION: ClassVar[int] = 1

    group: str
    topic: str
    isolation_level: IsolationLevel
    offsets: Mapping[int, int] | None
    timestamp_ms: int | None
    partitions: tuple[int, ...] | None
    topic_id: str = ""
    """The id of the topic for which the awaited plan was made."""
    number: int = 0
    """The number of the awaited plan, if its run has the group to itself. A DAG run that was deleted and triggered
    again has the group of the one before."""

    @classmethod
    def of_plan(cls, plan: Plan, *, group: str | None, partitions: tuple[int, ...] | None) -> DrainTarget:
        """Make the target for the end of a plan, in the group that its checkpoint commits to or in another one."""
        is_own = group in (None, plan.group)
        ends = {
            # An empty window does not move the pipeline's group.
            each.partition: each.end if len(each) or not (is_own and plan.is_published) else 0
            for each in plan.ranges
        }
        made = cls.of(
            Explicit(ends),
            group=group or plan.group,
            topic=plan.topic,
            isolation_level=plan.isolation_level,
            partitions=partitions,
        )
        has_group_to_itself = is_own and not (plan.continues_group or plan.is_published)
        return replace(made, topic_id=plan.topic_id, number=plan.number if has_group_to_itself else 0)

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
        # A gate over no partition would open at once.
        if offsets is not None and not offsets:
            raise ValueError("until is empty, and names no partition: name some, or leave it out")
        if partitions is not None:
            check_partitions(partitions)
        return cls(group, topic, isolation_level, offsets, timestamp_ms, partitions)

    @property
    def until(self) -> OffsetLimit:
        if self.offsets is not None:
            return Explicit(self.offsets)
        return Latest() if self.timestamp_ms is None else At(self.timestamp_ms)

    def position(self, facts: Facts, first: int) -> int:
        """Return the offset up to which a partition counts as read: the start of its log if no group offset counts."""
        held = facts.held
        if held is None or (self.number and held.mark is not None and held.mark.origin != Origin(self.number)):
            return first
        return held.offset
