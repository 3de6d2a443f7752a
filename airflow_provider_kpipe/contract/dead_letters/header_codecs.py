"""Codecs between one detail of a dead letter and the bytes of a header.

Writing never raises. Reading raises ValueError or struct.error for invalid bytes.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, get_args

from airflow_provider_kpipe.contract.dead_letters.dead_letter import (
    LARGEST_COUNT,
    LARGEST_OFFSET,
    LARGEST_PARTITION,
    TimestampKind,
)
from airflow_provider_kpipe.contract.documents import decode, encode
from airflow_provider_kpipe.contract.faults.fault import FailedTry, FaultKind

RETRIES_BYTES = 4_000

_JAVA_TIMESTAMP_KINDS = {
    "unknown": "NoTimestampType",
    "create_time": "CreateTime",
    "log_append_time": "LogAppendTime",
}
_TIMESTAMP_KINDS = {java: kind for kind, java in _JAVA_TIMESTAMP_KINDS.items()}
_STAGES = {"source": "KAFKA_CONSUME", "segment": "TRANSFORMATION", "destination": "KAFKA_PRODUCE"}
_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")
# As `_write_number` writes it. Python neither writes nor reads a number of more than 4,300 digits.
_NUMBER = re.compile(rb"-?[0-9]{1,19}")
_COUNT = re.compile(rb"[0-9]+")
_LARGEST_COUNT_DIGITS = len(str(LARGEST_COUNT))


@dataclass(frozen=True, slots=True)
class Codec:
    """Two functions that undo each other."""

    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]


# Each letter calls these several times: in C, that takes half as long.
_write_text: Callable[[str], bytes] = methodcaller("encode", "utf-8", "replace")
_write_number: Callable[[int], bytes] = b"%d".__mod__


def _read_text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _number(least: int, largest: int) -> Codec:
    def read(raw: bytes) -> int:
        if _NUMBER.fullmatch(raw) is None:
            raise ValueError(f"{raw[:60]!r} is not a number of at most 19 digits")
        return _within(int(raw), least, largest)

    return Codec(_write_number, read)


def _java_number(packed: struct.Struct, least: int, largest: int) -> Codec:
    """Return the codec of a number in a Java ByteBuffer: big-endian, and exactly as many bytes as `packed` has."""
    return Codec(packed.pack, lambda raw: _within(packed.unpack(raw)[0], least, largest))


def _within(number: int, least: int, largest: int) -> int:
    if not least <= number <= largest:
        raise ValueError(f"{number} is not between {least} and {largest}")
    return number


def _read_count(raw: bytes) -> int:
    """Read a count from 1, and cut it to the largest: a letter with a larger one has failed often enough."""
    digits = raw.lstrip(b"0")
    if _COUNT.fullmatch(raw) is None or not digits:
        raise ValueError(f"{raw[:60]!r} is not a count from 1")
    return LARGEST_COUNT if len(digits) > _LARGEST_COUNT_DIGITS else min(int(digits), LARGEST_COUNT)


def _choice(choices: tuple[Any, ...]) -> Callable[[bytes], str]:
    def read(raw: bytes) -> str:
        text = raw.decode()
        if text not in choices:
            raise ValueError(f"{text!r} is none of {choices}")
        return text

    return read


def _read_java_timestamp_kind(raw: bytes) -> str:
    kind = _TIMESTAMP_KINDS.get(raw.decode())
    if kind is None:
        raise ValueError(f"{raw[:60]!r} is not a type of timestamp")
    return kind


def latest_tries(retries: tuple[FailedTry, ...]) -> tuple[FailedTry, ...]:
    """Return the latest tries, as many as fit into a letter."""
    while len(_retries_as_json(retries)) > RETRIES_BYTES:
        retries = retries[1:]
    return retries


def _write_retries(retries: tuple[FailedTry, ...]) -> bytes:
    return _retries_as_json(latest_tries(retries))


def _retries_as_json(retries: tuple[FailedTry, ...]) -> bytes:
    return json.dumps(encode(retries), ensure_ascii=False).encode(errors="replace")


def _read_retries(raw: bytes) -> tuple[FailedTry, ...]:
    try:
        document = json.loads(raw)
    except RecursionError as error:
        raise ValueError(f"{raw[:60]!r}... is nested too deeply") from error
    if not isinstance(document, list):
        raise ValueError(f"{raw[:60]!r} is not a list of tries")
    return tuple(decode(FailedTry, each, f"retries[{index}]") for index, each in enumerate(document))


TEXT = Codec(_write_text, _read_text)
PARTITION = _number(0, LARGEST_PARTITION)
OFFSET = _number(0, LARGEST_OFFSET)
TIMESTAMP = _number(-LARGEST_OFFSET - 1, LARGEST_OFFSET)
COUNT = Codec(_write_number, _read_count)
JAVA_PARTITION = _java_number(_INT, 0, LARGEST_PARTITION)
JAVA_OFFSET = _java_number(_LONG, 0, LARGEST_OFFSET)
JAVA_TIMESTAMP = _java_number(_LONG, -LARGEST_OFFSET - 1, LARGEST_OFFSET)
KIND = Codec(_write_text, _choice(get_args(FaultKind)))
TIMESTAMP_KIND = Codec(_write_text, _choice(get_args(TimestampKind)))
JAVA_TIMESTAMP_KIND = Codec(lambda kind: _JAVA_TIMESTAMP_KINDS[kind].encode(), _read_java_timestamp_kind)
RETRIES = Codec(_write_retries, _read_retries)


def write_stage(kind: str) -> bytes:
    """Write Kafka Connect's word for the stage of a fault; Connect has one for only a few kinds of fault."""
    return _STAGES.get(kind, "TRANSFORMATION").encode()
