"""A dry run: decides letter by letter as a redrive would, and writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import cast

from confluent_kafka import Message

from airflow_provider_kpipe.contract.clean_text import cleaned
from airflow_provider_kpipe.contract.dead_letters.consumed_headers import headers_of
from airflow_provider_kpipe.contract.dead_letters.dead_letter import DeadLetter
from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter
from airflow_provider_kpipe.contract.documents import OtherVersionError
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.redrive.decisions import Decisions
from airflow_provider_kpipe.contract.redrive.ledger import Place
from airflow_provider_kpipe.contract.redrive.redrive import OUTCOMES, RedriveOrder, refused_letter
from airflow_provider_kpipe.contract.redrive.result import PartitionRedrive, RedriveResult, Sample
from airflow_provider_kpipe.kafka.bounded_reader import read_range
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.planning.plan_check import check_in_log
from airflow_provider_kpipe.redriving.ledger_topic import redriven

SAMPLES = 10
MOST_NAMES = 50
# All of it goes into XCom.
TEXT_CHARACTERS = 300


def preview(settings: Mapping[str, str], order: RedriveOrder) -> RedriveResult:
    """Decide as the engine does, over the same ranges and the same ledger."""
    plan, redrive = order.plan, order.redrive
    with Positions(settings) as positions:
        check_in_log(positions, plan)
    seen = _Seen(plan.topic, Decisions(redrive, redriven(settings, plan, redrive.ledger_topic)))
    partitions = [seen.look(settings, planned) for planned in plan.ranges]
    return RedriveResult.of(
        order,
        partitions,
        exception_classes=dict(seen.exception_classes.most_common(MOST_NAMES)),
        pipelines=dict(seen.pipelines.most_common(MOST_NAMES)),
        samples=seen.samples,
    )


class _Seen:
    """Counts of the letters that would be redriven, and the first few of them."""

    def __init__(self, topic: str, decisions: Decisions) -> None:
        self._topic = topic
        self._decisions = decisions
        self.exception_classes: Counter[str] = Counter()
        self.pipelines: Counter[str] = Counter()
        self.samples: list[Sample] = []

    def look(self, settings: Mapping[str, str], planned: PartitionRange) -> PartitionRedrive:
        outcomes: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
        next_offset, reason = planned.end, None
        for message in read_range(settings, self._topic, planned):
            place = Place(planned.partition, cast("int", message.offset()))
            try:
                letter = letter_in(message)
            except OtherVersionError as error:
                next_offset, reason = place.offset, refused_letter(place.offset, error)
                break
            outcome = self._decisions.outcome_of(letter, place, message.timestamp()[1])
            outcomes[outcome] += 1
            if letter is not None and outcome == "redriven":
                self._note(message, letter)
        return PartitionRedrive(
            partition=planned.partition,
            start=planned.start,
            end=planned.end,
            next_offset=next_offset,
            complete=reason is None,
            reason=reason,
            read=sum(outcomes.values()),
            written=0,
            dead_lettered=0,
            outcomes=outcomes,
        )

    def _note(self, message: Message, letter: DeadLetter) -> None:
        self.exception_classes[_shown(letter.fault.exception_class)] += 1
        self.pipelines[_shown(letter.pipeline)] += 1
        if len(self.samples) < SAMPLES:
            source, fault = letter.source, letter.fault
            self.samples.append(
                Sample(
                    dead_letter=f"{message.topic()}-{message.partition()}-{message.offset()}",
                    record=f"{_shown(source.topic)}-{source.partition}-{source.offset}",
                    key=None if letter.key is None else _shown(letter.key.decode(errors="replace")),
                    pipeline=_shown(letter.pipeline),
                    exception_class=_shown(fault.exception_class),
                    message=_shown(fault.message),
                    occurred_at=_shown(fault.occurred_at),
                    attempt=letter.attempt,
                )
            )


def _shown(text: str) -> str:
    return cleaned(text, TEXT_CHARACTERS)


def letter_in(message: Message) -> DeadLetter | None:
    """Return the dead letter in a message, or None; raise OtherVersionError as `read_dead_letter` does."""
    try:
        headers = headers_of(message)
    except SystemError:
        # The name of a header is not UTF-8, so another program than kpipe wrote it.
        return None
    return read_dead_letter(message.key(), message.value(), headers or ())
