"""Conversion of dead letters to Kafka messages, and back, in every format and dialect."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from airflow_provider_kpipe.contract.dead_letters.dead_letter import Coordinates, DeadLetter, FirstFault, Header
from airflow_provider_kpipe.contract.dead_letters.dialects import (
    ALWAYS_HEADERS,
    ENVELOPE_MARK,
    FAULT_HEADERS,
    LENGTH_HEADER,
    OUR_HEADERS,
    READERS,
    Dialect,
)
from airflow_provider_kpipe.contract.dead_letters.envelope import Envelope
from airflow_provider_kpipe.contract.documents import DocumentError, OtherVersionError
from airflow_provider_kpipe.contract.faults.fault import Fault

_COORDINATES = {"topic", "partition", "offset"}
# Dead letters of other programs leave out some of these details.
_UNTOLD_FAULT: Mapping[str, Any] = {
    "component": "",
    "kind": "segment",
    "exception_class": "",
    "message": "",
    "stacktrace": "",
    "attempts": 1,
    "occurred_at": "",
}


class DeadLetterMessage(NamedTuple):
    """A message for a dead-letter topic; its timestamp is the record's."""

    key: Any
    value: Any
    headers: Sequence[Header]


def write_raw(letter: DeadLetter, dialect: Dialect) -> DeadLetterMessage:
    """Return the record as it came, with the headers about its fault behind its own."""
    return DeadLetterMessage(letter.key, letter.value, [*letter.headers, *dialect.fault_headers(letter)])


def write_envelope(letter: DeadLetter, dialect: Dialect) -> DeadLetterMessage:
    """Return a message with everything in its value, which alone has the record's own headers."""
    return DeadLetterMessage(letter.key, Envelope.around(letter).to_bytes(), dialect.envelope_headers(letter))


def has_fault_headers(headers: Iterable[Header]) -> bool:
    for name, _ in headers:  # noqa: SIM110  # a generator for each record costs more than the look itself
        if name in FAULT_HEADERS:
            return True
    return False


def read_dead_letter(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> DeadLetter | None:
    """Return the letter that a message is, whichever program wrote it; None without the coordinates of its record.

    Raise OtherVersionError for an envelope that only another version of kpipe can open.
    """
    block = _last_block(headers)
    # In front of a block of kpipe's, a mark is the record's own: it came in an envelope that was not opened.
    if value is not None and ENVELOPE_MARK in (headers if block is None else headers[block.start : block.stop]):
        try:
            envelope = Envelope.read_bytes(value)
            if envelope is not None:
                return envelope.opened()
            # Another program has changed the value on its way: the headers still have the most important details.
        except OtherVersionError:
            raise
        except DocumentError:
            # Another program has changed the envelope: its value is not the record, and kpipe cannot take that out.
            return None
    own, ours, theirs = _parted(headers, block)
    # Outputs of kpipe's may have source coordinates too: only a dead letter has an attempt.
    is_ours = "attempt" in ours
    details = {**theirs, **ours} if is_ours else theirs
    source = _part(details, "source.")
    if not source.keys() >= _COORDINATES:
        return None
    first = _part(details, "first.")
    return DeadLetter(
        key=key,
        value=value,
        headers=own,
        source=Coordinates(**source),
        fault=_fault(_part(details, "fault.")),
        pipeline=details.get("pipeline", ""),
        group=details.get("group", ""),
        run_key=details.get("run_key", ""),
        attempt=details.get("attempt", 1),
        first=FirstFault(**first) if first.keys() >= _COORDINATES else None,
    )


def _fault(details: Mapping[str, Any]) -> Fault:
    told = {**_UNTOLD_FAULT, **details}
    cause = told.pop("cause", None)
    return Fault(**{**told, "exception_class": cause or told["exception_class"]})


def _last_block(headers: Sequence[Header]) -> range | None:
    """Return the positions of the last headers that kpipe has written together, if they are still together.

    Headers of others may follow: an output of kpipe's is stamped behind them.
    """
    for at in range(len(headers) - 1, -1, -1):
        name, raw = headers[at]
        if name == LENGTH_HEADER:
            length = int(raw) if raw is not None and raw.isdigit() and len(raw) < 4 else 0
            block = range(at + 1 - length, at + 1)
            names = {headers[each][0] for each in block} if block.start >= 0 else set()
            return block if ALWAYS_HEADERS <= names <= FAULT_HEADERS else None
    return None


def _parted(
    headers: Sequence[Header], block: range | None
) -> tuple[tuple[Header, ...], dict[str, Any], dict[str, Any]]:
    """Return the record's own headers, then the details in kpipe's headers and those in other programs' headers."""
    if block is not None and block.stop == len(headers):
        ours, theirs = _details(headers[block.start :])
        if _part({**theirs, **ours}, "fault."):
            return tuple(headers[: block.start]), ours, theirs
    # The end does not say why the record failed: other programs changed it, or a mapper or a redrive made it.
    at: Collection[int] = block if block is not None else _last_of_each(name for name, _ in headers)
    told = (each for index, each in enumerate(headers) if index in at or each[0] not in OUR_HEADERS)
    ours, theirs = _details(told)
    return _own_headers(headers, at, ours, theirs), ours, theirs


def _last_of_each(names: Iterable[str]) -> Collection[int]:
    """Return the positions of kpipe's headers in a message without a block: the last of each name."""
    return {name: index for index, name in enumerate(names) if name in OUR_HEADERS}.values()


def _own_headers(
    headers: Sequence[Header], at: Collection[int], ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> tuple[Header, ...]:
    """Return the record's own headers. Outside of `at`, it came with the headers that have a name of kpipe's."""
    is_ours = "attempt" in ours
    # In a letter of kpipe's, other programs' headers came with the record unless they make a letter by themselves.
    has_theirs = not is_ours or _part(theirs, "source.").keys() >= _COORDINATES
    return tuple(
        header
        for index, header in enumerate(headers)
        if header[0] not in (FAULT_HEADERS if has_theirs else OUR_HEADERS)
        or (header[0] in OUR_HEADERS and not (is_ours and index in at))
    )


def _details(headers: Iterable[Header]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the details in kpipe's headers and those in other programs' headers, by the path of the detail."""
    ours: dict[str, Any] = {}
    theirs: dict[str, dict[str, Any]] = {}
    for name, raw in headers:
        if raw is None or name not in READERS:
            continue
        dialect, detail, read = READERS[name]
        said = ours if dialect == "kpipe" else theirs.setdefault(dialect, {})
        try:
            said[detail] = read(raw)
        except (ValueError, struct.error):
            # A header of this name with another content counts as none.
            continue
    # A letter that passed through several programs has the headers of the last one behind the others.
    return ours, next(reversed(theirs.values()), {})


def _part(details: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {path.removeprefix(prefix): detail for path, detail in details.items() if path.startswith(prefix)}
