"""A dead letter as one JSON document, for readers that look at values only."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from airflow_provider_kpipe.contract.dead_letters.dead_letter import (
    LARGEST_COUNT,
    LARGEST_OFFSET,
    LARGEST_PARTITION,
    Coordinates,
    DeadLetter,
    FirstFault,
)
from airflow_provider_kpipe.contract.dead_letters.header_codecs import latest_tries
from airflow_provider_kpipe.contract.dead_letters.header_names import check_header_name
from airflow_provider_kpipe.contract.documents import Document, DocumentError
from airflow_provider_kpipe.contract.faults.fault import Fault


@dataclass(frozen=True, slots=True)
class Envelope(Document):
    """A dead letter as JSON. Key, value and the headers' values are in base64, or null where the record has null."""

    SCHEMA_VERSION: ClassVar[int] = 1

    key: str | None
    value: str | None
    headers: tuple[tuple[str | None, ...], ...]
    """Pairs of a name and a value."""
    source: Coordinates
    fault: Fault
    pipeline: str
    group: str
    run_key: str
    attempt: int
    first: FirstFault | None

    def __post_init__(self) -> None:
        for pair in self.headers:
            if len(pair) != 2 or pair[0] is None:
                raise ValueError(f"the header {list(pair)} is not a pair of a name and a value")
        if self.attempt < 1:
            raise ValueError(f"attempt is {self.attempt}: a dead letter is at its first attempt or a later one")

    @classmethod
    def around(cls, letter: DeadLetter) -> Envelope:
        return cls(
            key=_packed(letter.key),
            value=_packed(letter.value),
            headers=tuple((name, _packed(value)) for name, value in letter.headers),
            source=letter.source,
            fault=_with_latest_tries(letter.fault),
            pipeline=letter.pipeline,
            group=letter.group,
            run_key=letter.run_key,
            attempt=letter.attempt,
            first=letter.first,
        )

    def opened(self) -> DeadLetter:
        """Return the letter inside; raise DocumentError for invalid base64, or a number that Kafka cannot have."""
        self._check_numbers()
        return DeadLetter(
            key=_unpacked(self.key, "key"),
            value=_unpacked(self.value, "value"),
            headers=tuple((_name(name), _unpacked(value, f"headers[{name!r}]")) for name, value in self.headers),
            source=self.source,
            fault=self.fault,
            pipeline=self.pipeline,
            group=self.group,
            run_key=self.run_key,
            attempt=self.attempt,
            first=self.first,
        )

    def _check_numbers(self) -> None:
        _check_within("attempt", self.attempt, 1, LARGEST_COUNT)
        _check_within("fault.attempts", self.fault.attempts, 1, LARGEST_COUNT)
        _check_within("source.timestamp", self.source.timestamp, -LARGEST_OFFSET - 1, LARGEST_OFFSET)
        for name, place in (("source", self.source), ("first", self.first)):
            if place is not None:
                _check_within(f"{name}.partition", place.partition, 0, LARGEST_PARTITION)
                _check_within(f"{name}.offset", place.offset, 0, LARGEST_OFFSET)

    def to_bytes(self) -> bytes:
        """Return the document of `to_json` in less than half of its time: there may be many."""
        return _ENCODER.encode({**self.head(), **_fields(self)}).encode(errors="replace")

    @classmethod
    def read_bytes(cls, raw: bytes) -> Envelope | None:
        """Read an envelope as `read_text` does; return None also for bytes that are not UTF-8."""
        try:
            return cls.read_text(raw.decode())
        except UnicodeDecodeError:
            return None


def _fields(part: Any) -> dict[str, Any]:
    return {name: getattr(part, name) for name in part.__slots__}


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_fields)


def _name(text: str | None) -> str:
    try:
        # JSON can hold names that no header can.
        check_header_name(text)
    except ValueError as error:
        raise DocumentError(f"Envelope.headers: {error}") from error
    return str(text)


def _check_within(field: str, number: int, least: int, largest: int) -> None:
    if not least <= number <= largest:
        raise DocumentError(f"Envelope.{field} is {str(number)[:30]}, and not between {least} and {largest}")


def _with_latest_tries(fault: Fault) -> Fault:
    return replace(fault, retries=latest_tries(fault.retries)) if fault.retries else fault


def _packed(raw: bytes | None) -> str | None:
    return None if raw is None else base64.b64encode(raw).decode()


def _unpacked(text: str | None, where: str) -> bytes | None:
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DocumentError(f"Envelope.{where} is not base64: {error}") from error
