"""Asks the cluster what the planner needs to know, and makes the plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_provider_kpipe.contract.completed_offsets import Spans
from airflow_provider_kpipe.contract.offsets import At, PartitionRange
from airflow_provider_kpipe.contract.ownership import completed_by, completed_in_pieces
from airflow_provider_kpipe.contract.pipeline import KafkaPipeline
from airflow_provider_kpipe.contract.plan import MOST_WRITERS, Plan, progress_group_of
from airflow_provider_kpipe.contract.progress import StoredProgress
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.kafka.planner import Snapshot, Wishes, cut, plan_ranges
from airflow_provider_kpipe.kafka.positions import GroupOffset, Positions, Topic
from airflow_provider_kpipe.kafka.windows import check_inside_log


def make_plan(
    pipeline: KafkaPipeline,
    wishes: Wishes,
    settings: Mapping[str, str],
    *,
    run_key: str,
    publish: bool,
    dry_run: bool,
    created_at: str,
    published: Mapping[int, int] | None = None,
) -> Plan:
    group = group_of(pipeline, wishes, run_key, publish)
    source = pipeline.source
    with Positions(settings) as positions:
        topic = positions.topic(source.topic)
        moments = [limit.timestamp_ms for limit in (wishes.start, wishes.end) if isinstance(limit, At)]
        ends = positions.latest(topic, source.isolation_level)
        committed = positions.group_offsets(group, topic.name, topic.partitions)
        stored, beyond = stored_of(positions, group, topic)
        snapshot = Snapshot(
            topic=topic.name,
            earliest=positions.earliest(topic, source.isolation_level),
            latest=ends,
            at={moment: positions.at(topic, moment, source.isolation_level, ends) for moment in moments},
            committed=committed,
            stored=stored,
            beyond=beyond,
            published=published or {},
        )
    ranges = plan_ranges(wishes, snapshot)
    check_inside_log(settings, topic, source.isolation_level, wishes, ranges)
    if pipeline.partitions.relaxed and len(topic.partitions) <= MOST_WRITERS:
        ranges = cut(ranges)
    if publish and not wishes.continues_group:
        check_publishing(group, snapshot, ranges)
    return Plan(
        run_key=run_key,
        pipeline=pipeline.name,
        group=group,
        topic=topic.name,
        topic_id=topic.id,
        isolation_level=source.isolation_level,
        continues_group=wishes.continues_group,
        dry_run=dry_run,
        created_at=created_at,
        topic_partitions=len(topic.partitions),
        ranges=ranges,
    )


def stored_of(positions: Positions, group: str, topic: Topic) -> tuple[Mapping[int, GroupOffset], Mapping[int, Spans]]:
    """What the last run has stored, where it had cut a partition into pieces taken together, and the spans above."""
    stored = positions.group_offsets(progress_group_of(group), topic.name, topic.partitions)
    beyond = {}
    for partition, held in stored.items():
        found = StoredProgress.read_text(held.metadata)
        if found is None or (found.pieces == 1 and not found.done):
            continue
        groups = [progress_group_of(group, slot) for slot in range(1, found.pieces)]
        pieces = [positions.group_offsets(each, topic.name, [partition]).get(partition) for each in groups]
        in_pieces = completed_in_pieces(
            found.run_key, found.planned_at, ((each.offset, each.metadata) for each in pieces if each)
        )
        completed = completed_by(found, held.offset, in_pieces, found.start)
        stored[partition] = GroupOffset(completed.next_offset, held.metadata)
        beyond[partition] = completed.beyond
    return stored, beyond


def group_of(pipeline: KafkaPipeline, wishes: Wishes, run_key: str, publish: bool) -> str:
    """A run that does not go on where the group stands has a group of its own, and never moves the live one."""
    return pipeline.group if wishes.continues_group or publish else f"{pipeline.group}.backfill.{run_key}"


def check_publishing(group: str, snapshot: Snapshot, ranges: Iterable[PartitionRange]) -> None:
    """A group is taken neither back, nor forwards over records that it has not read."""
    for planned in ranges:
        partition, held = planned.partition, snapshot.committed.get(planned.partition)
        if held is None or not len(planned):
            continue
        if planned.end < held.offset:
            raise PlanError(
                f"publishing this run would take group {group!r} back from {held.offset} to {planned.end} in "
                f"partition {partition}: leave publish off, or choose an end that is not before the group"
            )
        # What the log no longer holds, no start can read.
        unread = max(held.offset, snapshot.earliest[partition])
        if planned.start > unread:
            raise PlanError(
                f"publishing this run would take group {group!r} from {held.offset} to {planned.end} in partition "
                f"{partition} and pass over {unread} to {planned.start - 1}, which it has not read: start at "
                f"{unread} or before, or leave publish off"
            )


def check_kept_partitions(pipeline: KafkaPipeline, source_partitions: int, destination: Topic) -> None:
    """A partition that the destination does not have would send all its records to the dead letters."""
    there = len(destination.partitions)
    if pipeline.destination.keep_partition and there < source_partitions:
        raise PlanError(
            f"pipeline {pipeline.name!r} keeps each record's partition, but its source {pipeline.source.topic!r} has "
            f"{source_partitions} partitions and its destination {destination.name!r} has {there}: add "
            f"{source_partitions - there} to the destination, or declare it with keep_partition=False"
        )
