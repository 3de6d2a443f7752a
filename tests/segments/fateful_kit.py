"""Segments that decide by key and value what becomes of a record, and fail in the strangest ways."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import pyarrow as pa

from airflow_provider_kpipe import batch_segment

FATES = (
    *["passes"] * 6,
    *["is filtered"] * 2,
    *["becomes two"] * 2,
    *["raises"] * 5,
    "raises what cannot be said",
    "ends the program",
    "is too large",
    "is too large the second time",
    "has a header that none can have",
)
OUTPUTS = {"passes": 1, "is filtered": 0, "becomes two": 2}
"""Of the fates that are no fault."""
_TOO_LARGE = b"x" * 2_000_000
_NO_NAMES = (None, "a\0b", b"a", "\ud800", 5)
_NO_NAMES_IN_ARROW = (None, "a\0b")


class UnspeakableError(BaseException):
    def __str__(self) -> str:
        raise RuntimeError(f"\ud800 {10**4_300}")


def fate_of(key: bytes | None, value: bytes | None) -> str:
    return FATES[_number(key, value) % len(FATES)]


def _number(key: bytes | None, value: bytes | None) -> int:
    return crc32(repr((key, value)).encode())


def values_of(key: bytes | None, value: bytes | None) -> Sequence[bytes | None]:
    """Of each output, or an error."""
    fate = fate_of(key, value)
    if fate == "raises":
        raise ValueError((value or b"").decode(errors="surrogateescape") + "\x00\x1b[2J\ud800")
    if fate == "raises what cannot be said":
        raise UnspeakableError
    if fate == "ends the program":
        raise SystemExit(key)
    if fate == "is too large":
        return [_TOO_LARGE]
    if fate == "is too large the second time":
        return [value, _TOO_LARGE]
    return [value] * OUTPUTS.get(fate, 1)


def meet_fate(record: Any) -> Any:
    key, value = record.key, record.value
    if fate_of(key, value) == "has a header that none can have":
        record.headers.append((_NO_NAMES[_number(key, value) % len(_NO_NAMES)], b"1"))
    return [record.copy(value=each) for each in values_of(key, value)]


async def meet_fate_awaited(record: Any) -> Any:
    await asyncio.sleep(0)
    return meet_fate(record)


@batch_segment(headers=True)
def meet_fate_in_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    keys, values, headers = (batch.column(name).to_pylist() for name in ("key", "value", "headers"))
    rows: list[int] = []
    met: list[Any] = []
    for row, (key, value) in enumerate(zip(keys, values, strict=True)):
        outputs = values_of(key, value)
        met += outputs
        rows += [row] * len(outputs)
        if fate_of(key, value) == "has a header that none can have":
            name = _NO_NAMES_IN_ARROW[_number(key, value) % len(_NO_NAMES_IN_ARROW)]
            headers[row].append({"key": name, "value": b"1"})
    changed = {
        "value": pa.array(met, pa.binary()),
        "headers": _chosen(headers, rows, batch.schema.field("headers").type),
    }
    given = batch.take(pa.array(rows, pa.int64()))
    for name, column in changed.items():
        given = given.set_column(given.schema.get_field_index(name), name, column)
    return given


def _chosen(headers: Sequence[Any], rows: Sequence[int], kind: pa.DataType) -> pa.Array:
    return pa.array([headers[row] for row in rows], kind)
