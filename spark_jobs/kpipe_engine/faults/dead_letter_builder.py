"""The message for the dead-letter topic, built from a record and its fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from airflow_provider_kpipe.contract.dead_letters.dead_letter import (
    TIMESTAMP_KINDS,
    Coordinates,
    DeadLetter,
    bounded,
)
from airflow_provider_kpipe.contract.dead_letters.dialects import DIALECTS, Dialect, Pattern
from airflow_provider_kpipe.contract.dead_letters.messages import (
    DeadLetterMessage,
    has_fault_headers,
    read_dead_letter,
    write_envelope,
    write_raw,
)
from airflow_provider_kpipe.contract.documents import OtherVersionError
from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDeadLetter
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.faults.time_limit import NO_LIMIT, Limit
from kpipe_engine.faults.user_mapper import Mapper
from kpipe_engine.reading.messages import read_headers

Write: TypeAlias = Callable[[SourceMessage, Fault], DeadLetterMessage]

_MOST_PATTERNS = 256


class DeadLetterBuilder:
    """Builder of letters, each from scratch, in any format."""

    def __init__(self, plan: Plan, write: Callable[[DeadLetter], DeadLetterMessage]) -> None:
        self._plan = plan
        self._write = write

    def __call__(self, message: SourceMessage, fault: Fault) -> DeadLetterMessage:
        return self._write(self.letter(message, fault))

    def letter(self, message: SourceMessage, fault: Fault) -> DeadLetter:
        headers = read_headers(message)
        kind, timestamp = message.timestamp()
        letter = DeadLetter(
            key=message.key(),
            value=message.value(),
            headers=tuple(headers),
            source=Coordinates(
                message.topic(), message.partition(), message.offset(), timestamp, TIMESTAMP_KINDS[kind]
            ),
            fault=bounded(fault),
            pipeline=self._plan.pipeline,
            group=self._plan.group,
            run_key=self._plan.run_key,
        )
        if not has_fault_headers(headers):
            return letter
        previous = _previous(letter)
        if previous is None:
            return letter
        if previous.pipeline == self._plan.pipeline or previous.fault.exception_class:
            return letter.after(previous)
        # Another pipeline redrove the record, and it passed there. Here it faults for the first time.
        return replace(letter, key=previous.key, value=previous.value, headers=previous.headers)


def _previous(letter: DeadLetter) -> DeadLetter | None:
    """Return the letter that the record itself is, or None; a letter of another version counts as a plain record."""
    try:
        return read_dead_letter(letter.key, letter.value, letter.headers)
    except OtherVersionError:
        return None


class CachedDeadLetterBuilder:
    """Builder of raw letters from cached patterns: if many records fail for one reason, few of their details differ."""

    def __init__(self, plan: Plan, dialect: Dialect) -> None:
        self._single = DeadLetterBuilder(plan, partial(write_raw, dialect=dialect))
        self._dialect = dialect
        self._patterns: dict[tuple[object, ...], Pattern] = {}

    def __call__(self, message: SourceMessage, fault: Fault) -> DeadLetterMessage:
        headers = read_headers(message)
        if fault.retries or has_fault_headers(headers):
            return self._single(message, fault)
        kind, timestamp = message.timestamp()
        common = (message.partition(), kind, fault.component, fault.kind, fault.exception_class, fault.attempts)
        pattern = self._patterns.get(common) or self._new_pattern(common, message, fault)
        told = pattern.filled(message.offset(), timestamp, fault)
        return DeadLetterMessage(message.key(), message.value(), [*headers, *told])

    def _new_pattern(self, common: tuple[object, ...], message: SourceMessage, fault: Fault) -> Pattern:
        if len(self._patterns) >= _MOST_PATTERNS:
            self._patterns.clear()
        pattern = self._patterns[common] = self._dialect.pattern(self._single.letter(message, fault))
        return pattern


def choose_write(declared: KafkaDeadLetter, plan: Plan, limit: Limit = NO_LIMIT) -> Write:
    if declared.mapper is not None:
        return DeadLetterBuilder(plan, Mapper(declared.mapper, limit))
    dialect = DIALECTS[declared.dialect]
    if declared.format == "envelope":
        return DeadLetterBuilder(plan, partial(write_envelope, dialect=dialect))
    return CachedDeadLetterBuilder(plan, dialect)
