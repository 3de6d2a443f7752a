"""Check that redriven records stay in their topic: they go back with the timestamp that they had, however old."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from confluent_kafka import KafkaError, KafkaException, Message

from airflow_provider_kpipe.contract.documents import OtherVersionError
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.contract.redrive.decisions import Decisions
from airflow_provider_kpipe.contract.redrive.ledger import Place
from airflow_provider_kpipe.contract.redrive.redrive import (
    Redrive,
    RedriveError,
    RedriveOrder,
    restored_timestamp,
    target_topic,
)
from airflow_provider_kpipe.exceptions import KpipeError
from airflow_provider_kpipe.kafka.bounded_reader import read_range
from airflow_provider_kpipe.planning.timestamp_limits import TimestampLimit, timestamp_limits
from airflow_provider_kpipe.redriving.ledger_topic import redriven
from airflow_provider_kpipe.redriving.preview import letter_in

log = logging.getLogger(__name__)

# Reading one costs some 40 microseconds, and 200 bytes.
ENOUGH_LETTERS = 100_000


def check_redrive_retention(
    settings: Mapping[str, str], pipeline: KafkaPipeline, order: RedriveOrder, *, now_ms: int | None = None
) -> None:
    """Warn of records that their target topic would delete or reject; refuse a redrive of nothing else.

    The check reads the letters only if there is such a limit: a letter may be younger than the record inside. After
    the first 100,000 it reads on only until one would stay. A dry run gets at most a warning.
    """
    if not order.plan.pending:
        return
    now = int(time.time() * 1000) if now_ms is None else now_ms
    # A timestamp that lay in the future when its record was read lies less far ahead by now.
    limits = [each for each in timestamp_limits(settings, _topics(pipeline, order), now) if not each.is_of_future]
    if not limits:
        return
    seen = _compare(settings, pipeline, order, limits, now)
    for limit, count in seen.beyond.items():
        _tell(pipeline, order, limit, count, seen)


@dataclass
class _Seen:
    """Counts of the letters read: how many go to each topic, and how many of those are beyond each limit."""

    looked_at: int = 0
    is_all: bool = True
    written: Counter[str] = field(default_factory=Counter)
    beyond: Counter[TimestampLimit] = field(default_factory=Counter)

    def stays(self, limits: Iterable[TimestampLimit]) -> bool:
        """Tell whether at least one record is within each of these limits."""
        return all(self.beyond[each] < self.written[each.topic] for each in limits)


def _topics(pipeline: KafkaPipeline, order: RedriveOrder) -> list[str]:
    """Return the topics to which records go with the timestamps that they had."""
    redrive = order.redrive
    parking = [redrive.parking_topic] if redrive.parking_topic else []
    keeps = redrive.target == "source" or pipeline.destination.keep_timestamp
    return [target_topic(pipeline, redrive), *parking] if keeps else parking


def _compare(
    settings: Mapping[str, str], pipeline: KafkaPipeline, order: RedriveOrder, limits: list[TimestampLimit], now: int
) -> _Seen:
    """Compare letters with the limits; after many of them, read on only until one is known to stay."""
    plan, redrive, seen = order.plan, order.redrive, _Seen()
    decisions = Decisions(redrive, redriven(settings, plan, redrive.ledger_topic))
    refusing = [each for each in limits if each.topic == target_topic(pipeline, redrive)]
    for planned in plan.ranges:
        try:
            for message in read_range(settings, plan.topic, planned):
                if seen.looked_at >= ENOUGH_LETTERS and seen.stays(refusing):
                    seen.is_all = False
                    return seen
                seen.looked_at += 1
                place = Place(planned.partition, cast("int", message.offset()))
                topic, timestamp = _write(pipeline, redrive, decisions, message, place)
                if topic is not None:
                    seen.written[topic] += 1
                # A producer replaces a timestamp of 0 by the time of writing.
                written_as = timestamp or now
                seen.beyond.update(each for each in limits if each.topic == topic and written_as < each.moment(now))
        except OtherVersionError:
            # The redrive stops this partition in front of the letter.
            continue
        except KpipeError as failure:
            if not _is_gone(failure):
                raise
            # The job reports it.
            seen.is_all = False
            log.info("partition %d is not compared any further: %s", planned.partition, failure)
    return seen


def _write(
    pipeline: KafkaPipeline, redrive: Redrive, decisions: Decisions, message: Message, place: Place
) -> tuple[str | None, int]:
    """Return the topic that a letter goes to, None if it stays where it is, and the timestamp to write."""
    written_at = message.timestamp()[1]
    letter = letter_in(message)
    outcome = decisions.outcome_of(letter, place, written_at)
    if letter is not None and outcome == "redriven":
        return target_topic(pipeline, redrive), restored_timestamp(letter, written_at)
    return redrive.parking_topic if outcome == "parked" else None, written_at


def _is_gone(failure: KpipeError) -> bool:
    """Tell whether the letters have expired since the plan was made."""
    cause = failure.__cause__
    return isinstance(cause, KafkaException) and cause.args[0].code() == KafkaError._AUTO_OFFSET_RESET


def _tell(pipeline: KafkaPipeline, order: RedriveOrder, limit: TimestampLimit, beyond: int, seen: _Seen) -> None:
    redrive, written = order.redrive, seen.written[limit.topic]
    some = "" if seen.is_all else f", of {seen.looked_at:,} that were looked at,"
    among = f"{beyond:,} of {written:,} dead letters{some} that would be"
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
    if beyond == written and seen.is_all and not order.plan.dry_run:
        raise RedriveError(f"nothing was redriven: {told}")
    log.warning("%s", told)
