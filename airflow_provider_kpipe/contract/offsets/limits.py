"""Limits: the words, moments and offsets by which people say where a range begins and ends."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, TypeAlias, get_args

WithoutOffset: TypeAlias = Literal["earliest_at_first", "earliest", "latest", "error"]


@dataclass(frozen=True, slots=True)
class Committed:
    """The group's position; `otherwise` says where a partition without a committed offset starts.

    By default it starts at the beginning, but only at first: if an earlier checkpoint is known, the group's offset
    has expired or was deleted, and starting over would go unnoticed.
    """

    otherwise: WithoutOffset = "earliest_at_first"

    def __post_init__(self) -> None:
        if self.otherwise not in get_args(WithoutOffset):
            raise ValueError(f"committed, otherwise {self.otherwise!r}: use 'earliest', 'latest' or 'error'")


@dataclass(frozen=True, slots=True)
class Earliest:
    """The first record that the topic still holds."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The end of the log, as readers under the source's isolation level see it."""


@dataclass(frozen=True, slots=True)
class At:
    """The first record at or after a moment, in milliseconds since 1970 (UTC)."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Explicit:
    """One offset for each named partition; the plan leaves out the other partitions."""

    offsets: Mapping[int, int]


OffsetLimit: TypeAlias = Committed | Earliest | Latest | At | Explicit

_FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_WORDS: Mapping[str, OffsetLimit] = {
    "committed": Committed(),
    "committed-or-earliest": Committed("earliest"),
    "committed-or-latest": Committed("latest"),
    "committed-or-error": Committed("error"),
    "earliest": Earliest(),
    "latest": Latest(),
}


def check_partitions(partitions: Collection[int]) -> None:
    """Raise ValueError for an empty choice of partitions, and for a negative number."""
    if not partitions:
        raise ValueError("partitions is empty, and names no partition: name some, or leave it out")
    for partition in partitions:
        if partition < 0:
            raise ValueError(f"partitions has {partition}: a partition is a whole number from 0")


def parse_limit(wish: Any, name: str) -> OffsetLimit:
    """Return the limit for a wish as people write it: a word, a moment, or an offset per partition."""
    match wish:
        case Committed() | Earliest() | Latest() | At() | Explicit():
            return wish
        case str() if wish in _WORDS:
            return _WORDS[wish]
        case str():
            return At(_milliseconds(_parse_moment(wish, name), name))
        case datetime():
            return At(_milliseconds(wish, name))
        case Mapping():
            return Explicit(_parse_offsets(wish, name))
    raise ValueError(f"{name} is {wish!r}: {_HOW_TO_WISH}")


_HOW_TO_WISH = (
    "use 'committed', 'earliest', 'latest', a moment such as '2026-01-31T12:00:00+00:00', "
    "or an offset per partition such as {'0': 1200, '1': 900}"
)


def _parse_moment(text: str, name: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{name} is {text!r}: {_HOW_TO_WISH}") from None


def _milliseconds(moment: datetime, name: str) -> int:
    # A moment without a zone is UTC, as everywhere in Airflow.
    aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    milliseconds = round((aware - _FIRST_MOMENT) / _MILLISECOND)
    if milliseconds < 0:
        # Kafka reads negative numbers as words: -1 is the end of the log, -2 its start.
        raise ValueError(f"{name} is {moment.isoformat()}, which is before 1970: use 'earliest'")
    return milliseconds


def _parse_offsets(wish: Mapping[Any, Any], name: str) -> dict[int, int]:
    if not wish:
        raise ValueError(f"{name} names no partition: {_HOW_TO_WISH}")
    offsets: dict[int, int] = {}
    for partition, next_offset in wish.items():
        key, value = _from_zero(partition), _from_zero(next_offset)
        if key is None or value is None:
            raise ValueError(
                f"{name} has {partition!r}: {next_offset!r}; a partition and its offset are whole numbers from 0"
            )
        if key in offsets:
            raise ValueError(f"{name} names partition {key} twice, with {offsets[key]} and with {value}: keep one")
        offsets[key] = value
    return offsets


def _from_zero(value: Any) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return value if type(value) is int and value >= 0 else None
