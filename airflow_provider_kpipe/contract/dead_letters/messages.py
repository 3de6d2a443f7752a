"""Turns dead letters into Kafka messages, and back, in every format and dialect."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from airflow_provider_kpipe.contract.dead_letters.dead_letter import Coordinates, DeadLetter, FirstFault, Header
from airflow_provider_kpipe.contract.dead_letters.dialects import (
    BLOCKS,
    FAULT_HEADERS,
    FORMAT_HEADER,
    OUR_HEADERS,
    READERS,
    REDRIVE_BLOCKS,
    Dialect,
)
from airflow_provider_kpipe.contract.dead_letters.envelope import Envelope
from airflow_provider_kpipe.contract.documents import DocumentError, OtherVersionError
from airflow_provider_kpipe.contract.faults.fault import Fault

_ENVELOPE_MARK: Header = (FORMAT_HEADER, b"envelope")
_BLOCK_LENGTHS = sorted({len(block) for block in BLOCKS})
_REDRIVE_LENGTHS = sorted({len(block) for block in REDRIVE_BLOCKS}, reverse=True)
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
    headers = [*dialect.named_headers(letter), _ENVELOPE_MARK]
    return DeadLetterMessage(letter.key, Envelope.around(letter).to_bytes(), headers)


def has_fault_headers(headers: Iterable[Header]) -> bool:
    for name, _ in headers:  # noqa: SIM110  # a generator for each record costs more than the look itself
        if name in FAULT_HEADERS:
            return True
    return False


def read_dead_letter(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> DeadLetter | None:
    """Return the letter that a message is, whichever program wrote it; None without the coordinates of its record.

    Raise OtherVersionError for an envelope that only another version of kpipe can open.
    """
    block = _block_at_end(headers)
    # In front of a block of kpipe's, a mark is the record's own: it came in an envelope that was not opened.
    if _ENVELOPE_MARK in headers and value is not None and not block:
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


def _block_at_end(headers: Sequence[Header]) -> int:
    """Return the number of headers at the end that are one block of `Dialect.fault_headers`, or 0."""
    names = tuple(name for name, _ in headers[-_BLOCK_LENGTHS[-1] :])
    return next((length for length in _BLOCK_LENGTHS if names[-length:] in BLOCKS), 0)


def _parted(headers: Sequence[Header], block: int) -> tuple[tuple[Header, ...], dict[str, Any], dict[str, Any]]:
    """Return the record's own headers, then the details in kpipe's headers and those in other programs' headers."""
    if block:
        return tuple(headers[:-block]), *_details(headers[-block:])
    # The end is not as kpipe writes it: other programs changed it, or a mapper, a redrive or an envelope made it.
    at = _ours_at(tuple(name for name, _ in headers))
    told = (each for index, each in enumerate(headers) if index in at or each[0] not in OUR_HEADERS)
    ours, theirs = _details(told)
    return _own_headers(headers, at, ours, theirs), ours, theirs


def _ours_at(names: tuple[str, ...]) -> Collection[int]:
    """Return the positions of kpipe's headers: one block, which a stamp may follow, or else the last of each name."""
    for end in range(len(names), 0, -1):
        for length in _REDRIVE_LENGTHS:
            if names[max(end - length, 0) : end] in REDRIVE_BLOCKS:
                return range(end - length, end)
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
