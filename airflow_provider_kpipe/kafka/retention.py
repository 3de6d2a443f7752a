"""Whether what a run writes outlives it: a broker's retention looks at the timestamps that records carry."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.pipeline import KafkaPipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.exceptions import KpipeError, PlanError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.kafka.topic_limits import topic_settings

log = logging.getLogger(__name__)

RETENTION = "retention.ms"
POLICY = "cleanup.policy"
TIMESTAMPS = "message.timestamp.type"
HOUR_MS = 3_600_000


def check_retention(
    pipeline: KafkaPipeline,
    source: Mapping[str, str],
    written_to: Mapping[str, str],
    plan: Plan,
    *,
    now_ms: int | None = None,
) -> None:
    """Warn of records that are older than a topic they are written to keeps them; refuse a window of nothing else.

    :param source: settings of the cluster that is read
    :param written_to: settings of the cluster that is written
    """
    if not plan.pending:
        return
    now = int(time.time() * 1000) if now_ms is None else now_ms
    retentions = {topic: kept for topic, kept in _retentions(pipeline, written_to).items() if kept < now}
    if not retentions:
        return
    with Positions(source) as positions:
        topic = positions.topic(plan.topic)
        ends = positions.latest(topic, plan.isolation_level)
        for name, kept in retentions.items():
            first_kept = positions.at(topic, now - kept, plan.isolation_level, ends)
            expired = sum(_below(each, first_kept[each.partition]) for each in plan.pending)
            if expired:
                _tell(pipeline, plan, name, kept, expired)


def _tell(pipeline: KafkaPipeline, plan: Plan, topic: str, kept: int, expired: int) -> None:
    retention = f"{RETENTION}={kept} ({kept / HOUR_MS:,.1f} hours) of {topic!r}"
    if topic != pipeline.destination.topic:
        log.warning(
            "Up to %s of %s records are older than %s: the broker would delete their dead letters, which keep the "
            "timestamp of their record, as soon as it looks; give the topic a longer retention, or "
            "message.timestamp.type=LogAppendTime",
            *(f"{expired:,}", f"{plan.offsets_planned:,}", retention),
        )
        return
    remedy = "declare the destination with keep_timestamp=False, or give the topic a longer retention"
    if expired == plan.offsets_planned:
        raise PlanError(
            f"all {expired:,} records of the plan are older than {retention}, and outputs keep the timestamp of their "
            f"record: the broker would delete them all as soon as it looks; {remedy}"
        )
    log.warning(
        "Up to %s of %s records are older than %s: outputs keep the timestamp of their record, and the broker would "
        "delete these as soon as it looks; %s",
        *(f"{expired:,}", f"{plan.offsets_planned:,}", retention, remedy),
    )


def _below(planned: PartitionRange, first_kept: int) -> int:
    """So many offsets of a range lie before the first record that is young enough."""
    return max(0, min(planned.end, first_kept) - planned.start)


def _retentions(pipeline: KafkaPipeline, settings: Mapping[str, str]) -> dict[str, int]:
    """For how many milliseconds each topic keeps what is written with the timestamp of its record."""
    topics = [pipeline.destination.topic] if pipeline.destination.keep_timestamp else []
    if pipeline.dead_letter is not None:
        topics.append(pipeline.dead_letter.topic)
    try:
        found = topic_settings(settings, topics) if topics else {}
    except KpipeError as failure:
        log.info("the retention of the topics cannot be read, and is taken for long: %s", failure)
        return {}
    return {
        topic: int(each[RETENTION])
        for topic, each in found.items()
        if int(each.get(RETENTION, -1)) >= 0
        and "delete" in each.get(POLICY, "delete")
        and each.get(TIMESTAMPS) != "LogAppendTime"
    }
