"""How one detail of a dead letter becomes the bytes of a header, and comes back.

Writing never raises. Reading raises ValueError or struct.error for bytes that mean nothing.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, get_args

from airflow_provider_kpipe.contract.dead_letter import TimestampKind
from airflow_provider_kpipe.contract.faults import FailedTry, FaultKind
from airflow_provider_kpipe.contract.strict_json import decode, encode

RETRIES_BYTES = 4_000

_JAVA_TIMESTAMP_KINDS = {
    "unknown": "NoTimestampType",
    "create_time": "CreateTime",
    "log_append_time": "LogAppendTime",
}
_TIMESTAMP_KINDS = {java: kind for kind, java in _JAVA_TIMESTAMP_KINDS.items()}
_STAGES = {"source": "KAFKA_CONSUME", "segment": "TRANSFORMATION", "destination": "KAFKA_PRODUCE"}
_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")


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


def _read_count(raw: bytes) -> int:
    count = int(raw)
    if count < 1:
        raise ValueError(f"{count} is no count from 1")
    return count


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
        raise ValueError(f"{raw!r} is no type of timestamp")
    return kind


def _write_retries(retries: tuple[FailedTry, ...]) -> bytes:
    """The latest tries, as many as fit."""
    while len(written := json.dumps(encode(retries), ensure_ascii=False).encode(errors="replace")) > RETRIES_BYTES:
        retries = retries[1:]
    return written


def _read_retries(raw: bytes) -> tuple[FailedTry, ...]:
    try:
        document = json.loads(raw)
    except RecursionError as error:
        raise ValueError(f"{raw[:60]!r}... is nested too deeply") from error
    if not isinstance(document, list):
        raise ValueError(f"{raw[:60]!r} is no list of tries")
    return tuple(decode(FailedTry, each, f"retries[{index}]") for index, each in enumerate(document))


TEXT = Codec(_write_text, _read_text)
NUMBER = Codec(_write_number, int)
COUNT = Codec(_write_number, _read_count)
# A Java ByteBuffer's: big-endian, and exactly so many bytes.
INT = Codec(_INT.pack, lambda raw: _INT.unpack(raw)[0])
LONG = Codec(_LONG.pack, lambda raw: _LONG.unpack(raw)[0])
KIND = Codec(_write_text, _choice(get_args(FaultKind)))
TIMESTAMP_KIND = Codec(_write_text, _choice(get_args(TimestampKind)))
JAVA_TIMESTAMP_KIND = Codec(lambda kind: _JAVA_TIMESTAMP_KINDS[kind].encode(), _read_java_timestamp_kind)
RETRIES = Codec(_write_retries, _read_retries)


def write_stage(kind: str) -> bytes:
    """Kafka Connect's word for where a fault happened; it has fewer of them that we could mean."""
    return _STAGES.get(kind, "TRANSFORMATION").encode()
