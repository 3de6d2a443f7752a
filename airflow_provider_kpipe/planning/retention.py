"""Check that brokers accept and keep the outputs of a run, by the timestamps that the records carry."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.planning.timestamp_limits import RETENTION, TimestampLimit, timestamp_limits

log = logging.getLogger(__name__)


def check_retention(
    pipeline: KafkaPipeline,
    source: Mapping[str, str],
    written_to: Mapping[str, str],
    plan: Plan,
    *,
    now_ms: int | None = None,
) -> None:
    """Warn of records that a broker would delete or reject in a written topic; raise PlanError if all are too old.

    :param source: settings of the cluster that is read
    :param written_to: settings of the cluster that is written
    """
    if not plan.pending:
        return
    now = int(time.time() * 1000) if now_ms is None else now_ms
    limits = timestamp_limits(written_to, _topics(pipeline), now)
    if not limits:
        return
    with Positions(source) as positions:
        topic = positions.topic(plan.topic)
        ends = positions.latest(topic, plan.isolation_level)
        moments = {limit.moment(now) for limit in limits}
        found = {moment: positions.at(topic, moment, plan.isolation_level, ends) for moment in moments}
    for limit in limits:
        at = found[limit.moment(now)]
        beyond = sum(_beyond(limit, each, at[each.partition]) for each in plan.pending)
        if beyond:
            _tell(pipeline, plan, limit, beyond)


def _topics(pipeline: KafkaPipeline) -> list[str]:
    """Return the topics whose records carry the timestamp of the record that was read."""
    topics = [pipeline.destination.topic] if pipeline.destination.keep_timestamp else []
    return [*topics, pipeline.dead_letter.topic] if pipeline.dead_letter else topics


def _beyond(limit: TimestampLimit, planned: PartitionRange, at: int) -> int:
    """Count the offsets of a range that may lie beyond a limit.

    They lie before the first record that is young enough or, for a limit of the future, from the first record on that
    is too young. Both counts are upper bounds: a broker finds only the first record of a timestamp or a later one.
    """
    return max(0, planned.end - max(at, planned.start) if limit.is_of_future else min(planned.end, at) - planned.start)


def _tell(pipeline: KafkaPipeline, plan: Plan, limit: TimestampLimit, beyond: int) -> None:
    among = f"Up to {beyond:,} of {plan.offsets_planned:,} records are {limit.compared} {limit}"
    if limit.topic != pipeline.destination.topic:
        log.warning("%s: %s", among, _of_letters(limit))
        return
    remedy = f"declare the destination with keep_timestamp=False, or {limit.remedy}"
    when = " as soon as it looks" if limit.setting == RETENTION else ""
    if beyond == plan.offsets_planned and not limit.is_of_future:
        raise PlanError(
            f"all {beyond:,} records of the plan are {limit.compared} {limit}, and outputs keep the timestamp of their "
            f"record: the broker would {limit.fate} them all{when}; {remedy}"
        )
    log.warning(
        "%s: outputs keep the timestamp of their record, and the broker would %s these%s; %s",
        *(among, limit.fate, when, remedy),
    )


def _of_letters(limit: TimestampLimit) -> str:
    own_time = "message.timestamp.type=LogAppendTime"
    if limit.setting == RETENTION:
        return (
            "the broker would delete their dead letters, which keep the timestamp of their record, as soon as it "
            f"looks; {limit.remedy}, or {own_time}"
        )
    return (
        "the broker would reject their dead letters, which keep the timestamp of their record, and a record that "
        f"faults would stop its partition; {limit.remedy}, or give it {own_time}"
    )
