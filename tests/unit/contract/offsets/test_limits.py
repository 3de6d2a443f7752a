from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_provider_kpipe.contract.offsets.limits import (
    At,
    Committed,
    Earliest,
    Explicit,
    Latest,
    OffsetLimit,
    parse_limit,
)

NOON_MS = 1_769_860_800_000
NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)

WISHES: list[tuple[Any, OffsetLimit]] = [
    ("committed", Committed("earliest_at_first")),
    ("committed-or-earliest", Committed("earliest")),
    ("committed-or-latest", Committed("latest")),
    ("committed-or-error", Committed("error")),
    ("earliest", Earliest()),
    ("latest", Latest()),
    ("2026-01-31T12:00:00+00:00", At(NOON_MS)),
    ("2026-01-31T12:00:00Z", At(NOON_MS)),
    ("2026-01-31 12:00:00", At(NOON_MS)),
    (" 2026-01-31T12:00:00 ", At(NOON_MS)),
    ("2026-01-31T13:00:00.250+01:00", At(NOON_MS + 250)),
    (NOON, At(NOON_MS)),
    (NOON.replace(tzinfo=None), At(NOON_MS)),
    (NOON.astimezone(timezone(timedelta(hours=-8))), At(NOON_MS)),
    ({"0": 1200, "1": 900}, Explicit({0: 1200, 1: 900})),
    ({0: 0}, Explicit({0: 0})),
    ({"3": "17"}, Explicit({3: 17})),
    (At(5), At(5)),
    (Explicit({1: 2}), Explicit({1: 2})),
    (Committed("latest"), Committed("latest")),
]


@pytest.mark.parametrize(("wish", "limit"), WISHES, ids=[repr(wish) for wish, _ in WISHES])
def test_a_wish_is_read_as_people_write_it(wish: Any, limit: OffsetLimit) -> None:
    assert parse_limit(wish, "start") == limit


@pytest.mark.parametrize(
    "wish",
    ["", "yesterday", "Committed", "2026-13-01T00:00:00", "5", 5, 5.5, True, None, [0, 1], b"latest", ("latest",)],
    ids=repr,
)
def test_the_error_names_a_wrong_wish_and_the_right_forms(wish: Any) -> None:
    with pytest.raises(ValueError, match=r"^start .*use 'committed', 'earliest', 'latest', a moment such as"):
        parse_limit(wish, "start")


def test_an_offset_per_partition_needs_a_partition() -> None:
    with pytest.raises(ValueError, match=r"^end names no partition"):
        parse_limit({}, "end")


@pytest.mark.parametrize(
    "offsets",
    [
        {"zero": 1},
        {"0": "one"},
        {"0": None},
        {None: 1},
        {"-1": 1},
        {"0": -1},
        {"0": True},
        {"0": 1.0},
        {"0": float("nan")},
        {"0": float("inf")},
        {"0": [1]},
        {"0.5": 1},
        {0.5: 1},
        {True: 1},
        {"0": ""},
    ],
    ids=repr,
)
def test_a_partition_and_its_offset_are_whole_numbers_from_zero(offsets: Any) -> None:
    with pytest.raises(ValueError, match=r"^start has .*whole numbers from 0"):
        parse_limit(offsets, "start")


@pytest.mark.parametrize("offsets", [{0: 5, "0": 9}, {"1": 5, "01": 9}], ids=repr)
def test_a_partition_that_is_named_twice_is_refused(offsets: Any) -> None:
    with pytest.raises(ValueError, match=r"^start "):
        parse_limit(offsets, "start")


@pytest.mark.parametrize("moment", ["1969-12-31T23:59:59.999", "1969-12-31T23:59:59.998", "0001-01-01T00:00:00"])
def test_a_moment_before_1970_is_refused_because_kafka_reads_it_as_a_word(moment: str) -> None:
    with pytest.raises(ValueError, match=r"^start "):
        parse_limit(moment, "start")


def test_the_first_moment_of_1970_is_a_moment() -> None:
    assert parse_limit("1970-01-01T00:00:00", "start") == At(0)


def test_committed_needs_to_know_what_a_missing_offset_means() -> None:
    otherwise: Any = "none"
    with pytest.raises(ValueError, match="'earliest', 'latest' or 'error'"):
        Committed(otherwise)
