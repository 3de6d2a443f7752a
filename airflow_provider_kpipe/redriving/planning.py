"""Frozen ranges of the dead letters that a redrive looks at."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from airflow_provider_kpipe.contract.kafka_names import redrive_group_of
from airflow_provider_kpipe.contract.offsets.limits import OffsetLimit
from airflow_provider_kpipe.contract.pipeline.declaration import IsolationLevel, KafkaPipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive.redrive import Redrive, dead_letter_of
from airflow_provider_kpipe.exceptions import UnknownTopicError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.planning.make_plan import check_kept_partitions
from airflow_provider_kpipe.planning.needed_topics import topics_of
from airflow_provider_kpipe.planning.ranges import Snapshot, Wishes, plan_ranges
from airflow_provider_kpipe.transactions.sequence import draw_number

ISOLATION_LEVEL: IsolationLevel = "read_committed"


def make_redrive_plan(
    settings: Mapping[str, str],
    pipeline: KafkaPipeline,
    start: OffsetLimit,
    end: OffsetLimit,
    *,
    run_key: str,
    dry_run: bool,
    created_at: str,
) -> Plan:
    with Positions(settings) as positions:
        topic = positions.topic(dead_letter_of(pipeline).topic)
        snapshot = Snapshot(
            topic=topic.name,
            earliest=positions.earliest(topic, ISOLATION_LEVEL),
            latest=positions.latest(topic, ISOLATION_LEVEL),
        )
    group = redrive_group_of(topic.name)
    number = 0 if dry_run else draw_number(settings, group, topic.name)
    return Plan(
        run_key=run_key,
        number=number,
        pipeline=pipeline.name,
        group=group,
        working_group=group,
        topic=topic.name,
        topic_id=topic.id,
        isolation_level=ISOLATION_LEVEL,
        continues_group=False,
        dry_run=dry_run,
        created_at=created_at,
        topic_partitions=len(topic.partitions),
        ranges=plan_ranges(Wishes(start=start, end=end), snapshot, number),
        owner=pipeline.owner,
    )


def check_redrive_topics(
    settings: Mapping[str, str], source_settings: Mapping[str, str], pipeline: KafkaPipeline, redrive: Redrive
) -> None:
    """Raise if a topic is missing: it would hold up every letter, or make it a dead letter again."""
    roles = {"parking": redrive.parking_topic} if redrive.parking_topic else {}
    roles |= {role: pipeline.topic_roles[role] for role in ("dead letter", _target_role(redrive))}
    topics = topics_of(pipeline.name, [(settings, roles)])
    if redrive.target == "output" and pipeline.destination.keep_partition:
        # Outputs keep the partition of their source record. The source topic may be gone while its letters remain.
        with Positions(source_settings) as positions, suppress(UnknownTopicError):
            source = positions.topic(pipeline.source.topic)
            check_kept_partitions(pipeline, len(source.partitions), topics["destination"])


def _target_role(redrive: Redrive) -> str:
    return "source" if redrive.target == "source" else "destination"
