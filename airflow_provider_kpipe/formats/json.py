"""Segments for JSON without a schema: bytes in UTF-8 become Python values, and back.

A value or key of None passes as it is. JSON's `null` is read as None too, and is then written as a tombstone.
"""

from __future__ import annotations

from json import JSONDecoder, JSONEncoder
from typing import NoReturn

from airflow_provider_kpipe.record import Record


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not valid JSON")


# Made once: `json.dumps` makes an encoder for each call with an argument other than the default. Even without
# `check_circular`, a value that contains itself fails, at Python's recursion limit.
_decode = JSONDecoder(parse_constant=_refuse).decode
_encode = JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")).encode


def read(record: Record) -> Record:
    """Read the value from JSON."""
    if record.value is not None:
        record.value = _decode(str(record.value, "utf-8"))
    return record


def write(record: Record) -> Record:
    """Write the value as compact JSON."""
    if record.value is not None:
        record.value = _encode(record.value).encode()
    return record


def read_key(record: Record) -> Record:
    """Read the key from JSON."""
    if record.key is not None:
        record.key = _decode(str(record.key, "utf-8"))
    return record


def write_key(record: Record) -> Record:
    """Write the key as compact JSON."""
    if record.key is not None:
        record.key = _encode(record.key).encode()
    return record
