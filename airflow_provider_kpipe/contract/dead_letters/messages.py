"""Dead letters to Kafka messages, and back: in every format and dialect."""

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
# Dead letters that others wrote leave out some of this.
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
    """What is written to a dead-letter topic; the timestamp is the record's."""

    key: Any
    value: Any
    headers: Sequence[Header]


def write_raw(letter: DeadLetter, dialect: Dialect) -> DeadLetterMessage:
    """The record as it came, with the story of its fault behind its own headers."""
    return DeadLetterMessage(letter.key, letter.value, [*letter.headers, *dialect.fault_headers(letter)])


def write_envelope(letter: DeadLetter, dialect: Dialect) -> DeadLetterMessage:
    """Everything in the value. The record's own headers are in there, and not beside it once more."""
    headers = [*dialect.named_headers(letter), _ENVELOPE_MARK]
    return DeadLetterMessage(letter.key, Envelope.around(letter).to_bytes(), headers)


def has_fault_headers(headers: Iterable[Header]) -> bool:
    for name, _ in headers:  # noqa: SIM110  # a generator for each record costs more than the look itself
        if name in FAULT_HEADERS:
            return True
    return False


def read_dead_letter(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> DeadLetter | None:
    """The letter that a message is, whoever wrote it; None if it does not say where its record came from.

    OtherVersionError where the record is in an envelope that only another version of kpipe can open.
    """
    block = _block_at_end(headers)
    # Before a block of ours, a mark is the record's own: it came in an envelope that was not opened.
    if _ENVELOPE_MARK in headers and value is not None and not block:
        try:
            envelope = Envelope.read_bytes(value)
            if envelope is not None:
                return envelope.opened()
            # Someone has changed the value on its way: its headers still say the most important.
        except OtherVersionError:
            raise
        except DocumentError:
            # Somebody has been at the envelope: its value is not the record, and nobody can take that out.
            return None
    own, ours, theirs = _parted(headers, block)
    # Outputs of ours may bear source coordinates too: only a dead letter has been counted.
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
    """How many headers at the end are what `Dialect.fault_headers` writes, and nothing else."""
    names = tuple(name for name, _ in headers[-_BLOCK_LENGTHS[-1] :])
    return next((length for length in _BLOCK_LENGTHS if names[-length:] in BLOCKS), 0)


def _parted(headers: Sequence[Header], block: int) -> tuple[tuple[Header, ...], dict[str, Any], dict[str, Any]]:
    """The record's own headers, whatever their names, and what the others say in our words and in those of others."""
    if block:
        return tuple(headers[:-block]), *_details(headers[-block:])
    # The end is not as we write it: others have been at it, or a mapper, a redrive or an envelope made it.
    at = _ours_at(tuple(name for name, _ in headers))
    told = (each for index, each in enumerate(headers) if index in at or each[0] not in OUR_HEADERS)
    ours, theirs = _details(told)
    return _own_headers(headers, at, ours, theirs), ours, theirs


def _ours_at(names: tuple[str, ...]) -> Collection[int]:
    """Where our words stand: in one piece, behind which a stamp may follow, or else each where its name comes last."""
    for end in range(len(names), 0, -1):
        for length in _REDRIVE_LENGTHS:
            if names[max(end - length, 0) : end] in REDRIVE_BLOCKS:
                return range(end - length, end)
    return {name: index for index, name in enumerate(names) if name in OUR_HEADERS}.values()


def _own_headers(
    headers: Sequence[Header], at: Collection[int], ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> tuple[Header, ...]:
    """The record's own. Where a name of ours stands elsewhere than `at`, the record came with it."""
    is_ours = "attempt" in ours
    # In a letter of ours, words of others that do not make one by themselves came with the record.
    has_theirs = not is_ours or _part(theirs, "source.").keys() >= _COORDINATES
    return tuple(
        header
        for index, header in enumerate(headers)
        if header[0] not in (FAULT_HEADERS if has_theirs else OUR_HEADERS)
        or (header[0] in OUR_HEADERS and not (is_ours and index in at))
    )


def _details(headers: Iterable[Header]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What headers say in our words and in those of others, by the path of the detail."""
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
            # A header of this name that says something else: as good as none.
            continue
    # A letter that passed through several programs has the last one's headers behind the others'.
    return ours, next(reversed(theirs.values()), {})


def _part(details: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {path.removeprefix(prefix): detail for path, detail in details.items() if path.startswith(prefix)}
