"""A redrive: the dead letters that it selects, its target, and the outcome of each letter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import ClassVar, Literal, TypeAlias, get_args

from airflow_provider_kpipe.contract.dead_letters.dead_letter import Coordinates, DeadLetter
from airflow_provider_kpipe.contract.documents import Document, OtherVersionError
from airflow_provider_kpipe.contract.kafka_names import ledger_of
from airflow_provider_kpipe.contract.pipeline.declaration import (
    LONGEST_TOPIC,
    KafkaDeadLetter,
    KafkaPipeline,
    check_topic,
)
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.progress import OWN_COUNTERS

RedriveTarget: TypeAlias = Literal["source", "output"]
Outcome: TypeAlias = Literal[
    "redriven", "parked", "exhausted", "already_redriven", "duplicate", "elsewhere", "not_selected", "unreadable"
]

TARGETS: tuple[RedriveTarget, ...] = get_args(RedriveTarget)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
COUNTERS: Mapping[Outcome, str] = {outcome: OWN_COUNTERS + outcome for outcome in OUTCOMES}
"""The names under which a worker counts the outcomes, beside the counters of segments."""


class RedriveError(ValueError):
    """Mistake in the declaration of a redrive, which cannot work."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The conditions that select dead letters. A field that is None selects all."""

    pipeline: str | None = None
    exception_class: str | None = None
    """The name of the class, with its module or without."""
    occurred_from: int | None = None
    occurred_until: int | None = None
    """In milliseconds since 1970, as `occurred_from`; the fault occurred before this moment."""
    record: Coordinates | None = None
    """The coordinates of the record when it became a dead letter, for the first or for the last time."""

    def covers(self, letter: DeadLetter, written_at: int) -> bool:
        """Tell whether a letter is selected; `written_at`, its timestamp, replaces a missing time of its fault."""
        if self.pipeline is not None and self.pipeline != letter.pipeline:
            return False
        if self.exception_class is not None and not _is_named(letter.fault.exception_class, self.exception_class):
            return False
        if self.record is not None and _place(self.record) not in _places(letter):
            return False
        if self.occurred_from is None and self.occurred_until is None:
            return True
        occurred = occurred_ms(letter.fault.occurred_at, written_at)
        return (self.occurred_from is None or occurred >= self.occurred_from) and (
            self.occurred_until is None or occurred < self.occurred_until
        )


@dataclass(frozen=True, slots=True)
class Redrive(Document):
    """The treatment of the dead letters of a plan."""

    SCHEMA_VERSION: ClassVar[int] = 1

    target: RedriveTarget
    selection: Selection
    max_attempts: int | None
    """A record that has become a dead letter this many times is not tried again."""
    parking_topic: str | None
    ledger_topic: str
    source_topic: str
    """The topic that records go back to, if they came from it."""
    each_letter: bool = False
    """True redrives all letters of one record. Otherwise one of them is redriven, and the others are duplicates."""

    def __post_init__(self) -> None:
        if self.max_attempts is not None and (type(self.max_attempts) is not int or self.max_attempts < 1):
            raise RedriveError(f"max_attempts={self.max_attempts!r}: use a whole number from 1, or None for no cap")

    def outcome_of(self, letter: DeadLetter | None, written_at: int, redriven: bool) -> Outcome:
        """Return the outcome of a letter by itself; None is a message that is not a letter.

        `redriven` is true if the ledger has an entry for it.
        """
        if letter is None:
            return "unreadable"
        if not self.selection.covers(letter, written_at):
            return "not_selected"
        if redriven:
            return "already_redriven"
        if self.target == "source" and home_of(letter, self.source_topic) is None:
            return "elsewhere"
        if self.max_attempts is not None and letter.attempt >= self.max_attempts:
            return "parked" if self.parking_topic else "exhausted"
        return "redriven"


@dataclass(frozen=True, slots=True)
class RedriveOrder(Document):
    """A redrive with its frozen ranges: the same on every try and after every clear."""

    SCHEMA_VERSION: ClassVar[int] = 1

    plan: Plan
    redrive: Redrive


def dead_letter_of(pipeline: KafkaPipeline) -> KafkaDeadLetter:
    if pipeline.dead_letter is None:
        raise RedriveError(f"pipeline {pipeline.name!r} has no dead_letter topic: there is nothing to redrive")
    return pipeline.dead_letter


def ledger_topic_of(pipeline: KafkaPipeline) -> str:
    """Return the name of the ledger topic, which has an entry for each redriven letter."""
    ledger = ledger_of(dead_letter_of(pipeline).topic)
    if len(ledger) > LONGEST_TOPIC:
        raise RedriveError(f"the ledger topic {ledger!r} has more than {LONGEST_TOPIC} characters: shorten the topic's")
    return ledger


def redriving(pipeline: KafkaPipeline) -> KafkaPipeline:
    """Return the pipeline as a redrive runs it: on its dead letters' cluster, with a dead letter for each new fault."""
    dead_letter_of(pipeline)
    return replace(
        pipeline,
        source=replace(pipeline.source, conn_id=pipeline.destination_conn_id),
        destination=replace(pipeline.destination, conn_id=None),
        delivery="exactly_once",
        on_fault="dead_letter",
        max_dead_letters=None,
        max_dead_letter_ratio=None,
        # Each partition of the ledger has one writer, and the letters that are done are a prefix of their partition.
        partitions=replace(
            pipeline.partitions, execution_mode="preserve_partition_order", max_in_flight_per_partition=1
        ),
    )


def check_redrive(pipeline: KafkaPipeline, target: str, parking_topic: str | None) -> None:
    """Raise RedriveError if this pipeline's dead letters cannot go to the target or to the parking topic."""
    ledger = ledger_topic_of(pipeline)
    if target not in TARGETS:
        raise RedriveError(f"target={target!r}: use one of {', '.join(map(repr, TARGETS))}")
    if target == "source" and pipeline.destination_conn_id != pipeline.source.conn_id:
        raise RedriveError(
            f"pipeline {pipeline.name!r} reads from connection {pipeline.source.conn_id!r} and has its dead letters on "
            f"{pipeline.destination_conn_id!r}: a transaction covers one cluster only, so they cannot go back to the "
            "source; use target='output'"
        )
    if parking_topic is not None:
        check_topic(parking_topic, "parking")
    if parking_topic in (ledger, pipeline.source.topic, *pipeline.written_topics):
        raise RedriveError(
            f"parking_topic={parking_topic!r} has another use in pipeline {pipeline.name!r}: name a topic of its own"
        )


def target_topic(pipeline: KafkaPipeline, redrive: Redrive) -> str:
    """Return the topic that the records inside the dead letters go to."""
    return pipeline.source.topic if redrive.target == "source" else pipeline.destination.topic


def written_topics(pipeline: KafkaPipeline, redrive: Redrive) -> tuple[str, ...]:
    """Return the topics that a redrive writes to."""
    parking = [redrive.parking_topic] if redrive.parking_topic else []
    return (target_topic(pipeline, redrive), dead_letter_of(pipeline).topic, redrive.ledger_topic, *parking)


def refused_letter(source_offset: int, error: OtherVersionError) -> str:
    """Return the reason why a redrive stops in front of this letter: the letter may be a selected one."""
    return (
        f"offset {source_offset}: the dead letter there cannot be read: {error}; what lies behind it can go back now, "
        "with start_offsets in the form"
    )


def home_of(letter: DeadLetter, topic: str) -> int | None:
    """Return the partition of a topic that the record was in; None for a record that came from elsewhere."""
    for place in (letter.source, letter.first):
        if place is not None and place.topic == topic:
            return place.partition
    return None


def restored_timestamp(letter: DeadLetter, written_at: int) -> int:
    """Return the timestamp with which the record inside goes back; `written_at` is that of the dead letter."""
    return written_at if letter.source.timestamp < 0 else letter.source.timestamp


def occurred_ms(occurred_at: str, otherwise: int) -> int:
    """Return the moment of a fault in milliseconds since 1970, or `otherwise` if the text holds none."""
    try:
        moment = datetime.fromisoformat(occurred_at)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
        return round(aware.timestamp() * 1000)
    except (ValueError, OverflowError):
        return otherwise


def _is_named(exception_class: str, name: str) -> bool:
    return name in (exception_class, exception_class.rpartition(".")[2])


def _place(at: Coordinates) -> tuple[str, int, int]:
    return at.topic, at.partition, at.offset


def _places(letter: DeadLetter) -> list[tuple[str, int, int]]:
    found = [_place(letter.source)]
    if letter.first is not None:
        found.append((letter.first.topic, letter.first.partition, letter.first.offset))
    return found
