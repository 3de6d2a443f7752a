"""A dead letter: a record as it was read, and the fault that it could not pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from airflow_provider_kpipe.contract.faults.fault import Fault

Header: TypeAlias = tuple[str, bytes | None]
TimestampKind: TypeAlias = Literal["unknown", "create_time", "log_append_time"]
TIMESTAMP_KINDS: tuple[TimestampKind, ...] = get_args(TimestampKind)
"""In the order of the client's numbers for them."""

# A broker counts bytes: a text in another script may take four times as many as one in Latin letters.
MESSAGE_BYTES = 2_000
STACKTRACE_BYTES = 8_000
NAME_BYTES = 500

# Any program may have written the numbers in headers. These are the largest that Kafka has of each.
LARGEST_PARTITION = 2**31 - 1
LARGEST_OFFSET = 2**63 - 1
LARGEST_COUNT = 2**31 - 1
"""Attempts are counted up to this number, and a larger one is read as this one."""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The topic, partition and offset that a record was read from, with its timestamp."""

    topic: str
    partition: int
    offset: int
    timestamp: int = -1
    timestamp_kind: TimestampKind = "unknown"


@dataclass(frozen=True, slots=True)
class FirstFault:
    """The fault that made a record a dead letter for the first time."""

    topic: str
    partition: int
    offset: int
    exception_class: str = ""
    message: str = ""
    occurred_at: str = ""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record with its own key, value and headers, and its fault, whose texts are short enough for headers.

    A mapper is given a dead letter, and reading a dead-letter topic returns dead letters.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    source: Coordinates
    fault: Fault
    pipeline: str
    group: str
    run_key: str
    attempt: int = 1
    """The number of times that the record has become a dead letter, including this one."""
    first: FirstFault | None = None
    """None if this fault is the first."""

    def after(self, previous: DeadLetter) -> DeadLetter:
        """Return the same fault with the record inside `previous`, the letter that the record was before."""
        return replace(
            self,
            key=previous.key,
            value=previous.value,
            headers=previous.headers,
            attempt=min(previous.attempt + 1, LARGEST_COUNT),
            first=previous.first_fault,
        )

    @property
    def first_fault(self) -> FirstFault:
        """The fault that made the record a dead letter for the first time: this one, if there was none before."""
        return _bounded_first(self.first) if self.first else _first(self)


def bounded(fault: Fault) -> Fault:
    """Return the fault with texts that fit into headers: short enough in bytes, and UTF-8 whatever was raised."""
    component = fitted(fault.component, NAME_BYTES)
    exception_class = fitted(fault.exception_class, NAME_BYTES)
    message, stacktrace = bounded_texts(fault)
    before = (fault.component, fault.exception_class, fault.message, fault.stacktrace)
    if (component, exception_class, message, stacktrace) == before:
        return fault
    return replace(fault, component=component, exception_class=exception_class, message=message, stacktrace=stacktrace)


def bounded_texts(fault: Fault) -> tuple[str, str]:
    """Return the fault's message and stack trace, cut as in `bounded`."""
    # A trace ends with the exception and its place: that is the part to keep.
    return fitted(fault.message, MESSAGE_BYTES), fitted(fault.stacktrace, STACKTRACE_BYTES, keep_end=True)


def fitted(text: str, limit: int, keep_end: bool = False) -> str:
    """Return the text, cut to `limit` bytes of UTF-8 between characters; one that UTF-8 cannot encode becomes a `?`."""
    if text.isascii() and len(text) <= limit:
        return text
    encoded = text.encode(errors="replace")
    if len(encoded) > limit:
        encoded = encoded[len(encoded) - limit :] if keep_end else encoded[:limit]
    return encoded.decode(errors="ignore")


def _first(previous: DeadLetter) -> FirstFault:
    source, fault = previous.source, previous.fault
    return _bounded_first(
        FirstFault(
            source.topic, source.partition, source.offset, fault.exception_class, fault.message, fault.occurred_at
        )
    )


def _bounded_first(first: FirstFault) -> FirstFault:
    """Cut the texts to fit into headers, whichever program wrote them: they go from letter to letter."""
    return replace(
        first,
        topic=fitted(first.topic, NAME_BYTES),
        exception_class=fitted(first.exception_class, NAME_BYTES),
        message=fitted(first.message, MESSAGE_BYTES),
        occurred_at=fitted(first.occurred_at, NAME_BYTES),
    )
