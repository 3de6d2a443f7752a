"""The plan, made from facts that the planner asks the cluster for."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from airflow_provider_kpipe.contract.kafka_names import backfill_group_of, sequence_group_of
from airflow_provider_kpipe.contract.offsets.limits import At
from airflow_provider_kpipe.contract.offsets.metadata import LEAST_METADATA_BYTES
from airflow_provider_kpipe.contract.offsets.ranges import NO_EPOCH, PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.standing import Facts
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.kafka.cluster import Cluster
from airflow_provider_kpipe.kafka.positions import Positions, Topic
from airflow_provider_kpipe.planning.facts import facts_of
from airflow_provider_kpipe.planning.ranges import Snapshot, Wishes, cut, plan_ranges
from airflow_provider_kpipe.planning.truncation import refuse_truncated
from airflow_provider_kpipe.planning.windows import check_inside_log
from airflow_provider_kpipe.transactions.sequence import draw_number

log = logging.getLogger(__name__)


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
    group, source = pipeline.group, pipeline.source
    working_group = group if wishes.continues_group else backfill_group_of(group, run_key)
    with Positions(settings) as positions:
        topic = positions.topic(source.topic)
        moments = [limit.timestamp_ms for limit in (wishes.start, wishes.end) if isinstance(limit, At)]
        ends = positions.ends(topic, source.isolation_level)
        latest = {partition: end.offset for partition, end in ends.items()}
        metadata_bytes = positions.metadata_bytes(topic)
        snapshot = Snapshot(
            topic=topic.name,
            earliest=positions.earliest(topic, source.isolation_level),
            latest=latest,
            at={moment: positions.at(topic, moment, source.isolation_level, latest) for moment in moments},
            facts=facts_of(positions, group, topic),
            published=published or {},
            leader_epochs={partition: end.leader_epoch for partition, end in ends.items()},
        )
        check_other_topics(positions, pipeline, snapshot.facts)
        if source.isolation_level == "read_committed":
            tell_what_waits(topic.name, latest, positions.latest(topic, "read_uncommitted"))
    check_metadata(metadata_bytes)
    check_owner(pipeline, snapshot.facts)
    highest = max((facts.highest_number for facts in snapshot.facts.values()), default=0)
    number = 0 if dry_run else draw_number(settings, working_group, topic.name, above=highest)
    ranges = plan_ranges(wishes, snapshot, number)
    check_inside_log(settings, topic, source.isolation_level, wishes, ranges)
    publishes = publish and not wishes.continues_group
    if publishes or wishes.continues_group:
        check_not_truncated(positions.cluster, group, snapshot, ranges)
    if pipeline.partitions.relaxed:
        kept = {each.partition: len(snapshot.standing(each.partition).done) for each in ranges} if publishes else {}
        ranges = cut(ranges, len(topic.partitions), metadata_bytes, kept)
    if publishes:
        check_publishing(group, snapshot, ranges)
    return Plan(
        run_key=run_key,
        number=number,
        pipeline=pipeline.name,
        group=group if publishes else working_group,
        working_group=working_group,
        topic=topic.name,
        topic_id=topic.id,
        isolation_level=source.isolation_level,
        continues_group=wishes.continues_group,
        dry_run=dry_run,
        created_at=created_at,
        topic_partitions=len(topic.partitions),
        ranges=ranges,
        metadata_bytes=metadata_bytes,
        owner=pipeline.owner,
    )


def tell_what_waits(topic: str, latest: Mapping[int, int], written: Mapping[int, int]) -> None:
    """Log open transactions: one that hangs holds up run after run, and all of these runs are green."""
    behind = {partition: written[partition] - end for partition, end in latest.items() if written[partition] > end}
    if behind:
        partition, many = max(behind.items(), key=lambda each: each[1])
        log.info(
            "%d of %d partitions of %r are planned to where a transaction is open; in partition %d, %d offsets from %d "
            "on wait for its end. If that does not come: kafka-transactions.sh find-hanging",
            *(len(behind), len(latest), topic, partition, many, latest[partition]),
        )


def check_metadata(most: int) -> None:
    """Raise PlanError for a broker that accepts too little metadata beside an offset for a run's progress."""
    if most < LEAST_METADATA_BYTES:
        raise PlanError(
            f"the brokers' offset.metadata.max.bytes is {most}, and progress has to be stored beside offsets: "
            f"raise it to {LEAST_METADATA_BYTES} or more"
        )


def check_owner(pipeline: KafkaPipeline, facts: Mapping[int, Facts]) -> None:
    """Raise PlanError for a group that another pipeline works in: each of the two would read a part of the records."""
    for partition, known in facts.items():
        if known.owner is not None and known.owner != pipeline.owner:
            raise PlanError(
                f"partition {partition} of group {pipeline.group!r} belongs to pipeline {known.owner!r} over "
                f"{pipeline.source.topic!r}, and this one is {pipeline.owner!r}: give it its own name or group_id; or, "
                "if it replaces the other one, reset the group to its current offsets "
                "(kafka-consumer-groups.sh --reset-offsets --to-current)"
            )


def check_other_topics(positions: Positions, pipeline: KafkaPipeline, facts: Mapping[int, Facts]) -> None:
    """Raise PlanError at the first run over a topic if a pipeline over another one draws numbers in the same group."""
    if any(known.is_anything_known for known in facts.values()):
        return
    counter, topic = sequence_group_of(pipeline.group), pipeline.source.topic
    others = sorted(positions.topics_of(counter) - {topic})
    if others:
        raise PlanError(
            f"group {pipeline.group!r} already belongs to a pipeline over topic {others[0]!r}, and pipeline "
            f"{pipeline.name!r} reads {topic!r}: give it its own name or group_id; or, if it has moved to this topic, "
            f"forget the other one (kafka-consumer-groups.sh --delete-offsets --group {counter} --topic {others[0]})"
        )


def check_not_truncated(cluster: Cluster, group: str, snapshot: Snapshot, ranges: Iterable[PartitionRange]) -> None:
    """Raise PlanError if a leader does not know the offset at which the run resumes: it has lost records since."""
    asked = {}
    for planned in ranges:
        # This holds also for a published run with a group of its own: it moves the pipeline's group on from there.
        standing = snapshot.standing(planned.partition)
        # The spans that pieces have completed above the offset are not read again either.
        at = max(standing.highest_completed + 1, snapshot.earliest[planned.partition])
        # If the leader is still the one that had the records, none is lost.
        if standing.leader_epoch not in (NO_EPOCH, planned.leader_epoch) and at > 0:
            asked[planned.partition] = (at, standing.leader_epoch)
    refuse_truncated(cluster, group, snapshot.topic, asked)


def check_publishing(group: str, snapshot: Snapshot, ranges: Iterable[PartitionRange]) -> None:
    """Raise PlanError if publishing would move the group backwards, or forwards over unread records."""
    for planned in ranges:
        partition, held = planned.partition, snapshot.committed(planned.partition)
        if not len(planned):
            continue
        if held is not None and planned.end < held:
            raise PlanError(
                f"publishing this run would take group {group!r} back from {held} to {planned.end} in "
                f"partition {partition}: leave publish off, or choose an end that is not before the group"
            )
        # Records that the log no longer holds do not count: no start can read them.
        unread = max(held or 0, snapshot.earliest[partition])
        if planned.start > unread:
            raise PlanError(
                f"publishing this run would take group {group!r} from {held} to {planned.end} in partition "
                f"{partition} and pass over {unread} to {planned.start - 1}, which it has not read: start at "
                f"{unread} or before, or leave publish off"
            )


def check_kept_partitions(pipeline: KafkaPipeline, source_partitions: int, destination: Topic) -> None:
    """Raise PlanError if the destination lacks a partition to keep: all its records would become dead letters."""
    there = len(destination.partitions)
    if pipeline.destination.keep_partition and there < source_partitions:
        raise PlanError(
            f"pipeline {pipeline.name!r} keeps each record's partition, but its source {pipeline.source.topic!r} has "
            f"{source_partitions} partitions and its destination {destination.name!r} has {there}: add "
            f"{source_partitions - there} to the destination, or declare it with keep_partition=False"
        )
