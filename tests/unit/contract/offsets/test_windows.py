from __future__ import annotations

import pytest

from airflow_provider_kpipe.contract.offsets.limits import At, Committed, Earliest, Explicit, Latest, OffsetLimit
from airflow_provider_kpipe.contract.offsets.windows import check_window

NOON = At(1_769_860_800_000)


def test_a_window_of_one_moment_is_refused_with_what_to_write() -> None:
    with pytest.raises(ValueError, match=r"one moment, 2026-01-31T12:00:00\.000\+00:00, .*CronDataIntervalTimetable"):
        check_window(NOON, NOON)


def test_swapped_moments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"start 2026-.* is after end 1970-01-01T00:00:05\.000\+00:00: swap"):
        check_window(NOON, At(5_000))


@pytest.mark.parametrize("end", [Latest(), NOON, Explicit({0: 5})], ids=repr)
def test_a_start_at_the_end_of_the_log_is_refused_with_what_to_write(end: OffsetLimit) -> None:
    with pytest.raises(ValueError, match=r"start='latest': .* nothing would ever be read: use 'committed-or-latest'"):
        check_window(Latest(), end)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (At(5_000), At(5_001)),
        (NOON, Latest()),
        (Committed(), NOON),
        (Earliest(), NOON),
        (Explicit({0: 5}), Explicit({0: 5})),
    ],
    ids=repr,
)
def test_everything_else_may_hold_something(start: OffsetLimit, end: OffsetLimit) -> None:
    check_window(start, end)
