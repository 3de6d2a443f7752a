"""Whether what a redrive puts back stays there: a record goes back with the timestamp that it had, however old."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import cast

from airflow_provider_kpipe.contract.pipeline import KafkaPipeline
from airflow_provider_kpipe.contract.redrive import RedriveError, RedriveOrder, restored_timestamp, target_topic
from airflow_provider_kpipe.contract.redrive_decisions import Decisions
from airflow_provider_kpipe.contract.redrive_ledger import Place
from airflow_provider_kpipe.contract.strict_json import OtherVersionError
from airflow_provider_kpipe.kafka.bounded_reader import read_range
from airflow_provider_kpipe.kafka.redrive_ledger import redriven
from airflow_provider_kpipe.kafka.redrive_preview import letter_in
from airflow_provider_kpipe.kafka.timestamp_limits import TimestampLimit, timestamp_limits

log = logging.getLogger(__name__)


def check_redrive_retention(
    settings: Mapping[str, str], pipeline: KafkaPipeline, order: RedriveOrder, *, now_ms: int | None = None
) -> None:
    """Warn of records that the topic they go back to deletes or refuses; refuse a redrive of nothing else.

    It looks into every letter where such a limit may matter: a letter may be younger than the record inside. A dry run
    is warned only.
    """
    if not order.plan.pending:
        return
    now = int(time.time() * 1000) if now_ms is None else now_ms
    # What was in the future when its record was read is less so by now.
    limits = [each for each in timestamp_limits(settings, _topics(pipeline, order), now) if not each.is_of_future]
    if not limits:
        return
    written: Counter[str] = Counter()
    beyond: Counter[TimestampLimit] = Counter()
    for topic, timestamp in _writes(settings, pipeline, order):
        written[topic] += 1
        # A producer writes the time of writing in the place of 0.
        beyond.update(limit for limit in limits if limit.topic == topic and (timestamp or now) < limit.moment(now))
    for limit, count in beyond.items():
        _tell(pipeline, order, limit, count, written[limit.topic])


def _topics(pipeline: KafkaPipeline, order: RedriveOrder) -> list[str]:
    """Those that are written with timestamps from before."""
    redrive = order.redrive
    parking = [redrive.parking_topic] if redrive.parking_topic else []
    keeps = redrive.target == "source" or pipeline.destination.keep_timestamp
    return [target_topic(pipeline, redrive), *parking] if keeps else parking


def _writes(settings: Mapping[str, str], pipeline: KafkaPipeline, order: RedriveOrder) -> Iterator[tuple[str, int]]:
    """Which topic each letter goes to, and with which timestamp."""
    plan, redrive = order.plan, order.redrive
    target = target_topic(pipeline, redrive)
    decisions = Decisions(redrive, redriven(settings, plan, redrive.ledger_topic))
    for planned in plan.ranges:
        for message in read_range(settings, plan.topic, planned):
            try:
                letter = letter_in(message)
            except OtherVersionError:
                # The partition stops in front of it.
                break
            written_at = message.timestamp()[1]
            outcome = decisions.outcome_of(letter, Place(planned.partition, cast("int", message.offset())), written_at)
            if letter is not None and outcome == "redriven":
                yield target, restored_timestamp(letter, written_at)
            elif outcome == "parked" and redrive.parking_topic:
                yield redrive.parking_topic, written_at


def _tell(pipeline: KafkaPipeline, order: RedriveOrder, limit: TimestampLimit, beyond: int, written: int) -> None:
    redrive = order.redrive
    among = f"{beyond:,} of {written:,} dead letters that would be"
    if limit.topic != target_topic(pipeline, redrive):
        log.warning(
            "%s parked are %s %s, and keep their timestamp: the broker would %s them; %s",
            *(among, limit.compared, limit, limit.fate, limit.remedy),
        )
        return
    if redrive.target == "source":
        remedy = f"redrive with target='output', or {limit.remedy}"
    else:
        remedy = f"declare the destination with keep_timestamp=False, or {limit.remedy}"
    told = (
        f"{among} redriven hold records that are {limit.compared} {limit}, and go back with the timestamp that they "
        f"had: the broker would {limit.fate} them; {remedy}"
    )
    if beyond == written and not order.plan.dry_run:
        raise RedriveError(f"nothing was redriven: {told}")
    log.warning("%s", told)
