from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.offsets.limits import At, Committed, Earliest, Explicit, Latest, OffsetLimit
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.operators.wishes import check_interval, is_backfill, of_interval, wishes_of
from airflow_provider_kpipe.planning.ranges import Wishes

NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
NOON_MS, ONE_MS = 1_769_860_800_000, 1_769_864_400_000


def run_of(start: datetime | None = NOON, end: datetime | None = NOON + timedelta(hours=1)) -> Any:
    return {"dag_run": SimpleNamespace(run_type="backfill", data_interval_start=start, data_interval_end=end)}


def test_without_a_word_a_run_goes_on_where_the_group_stands() -> None:
    assert wishes_of({}) == Wishes(Committed(), Latest())


@pytest.mark.parametrize(
    ("context", "backfills"),
    [
        ({}, False),
        ({"dag_run": SimpleNamespace(conf={})}, False),
        ({"dag_run": SimpleNamespace(run_type="scheduled")}, False),
        (run_of(), True),
    ],
)
def test_only_airflow_says_that_a_run_is_a_backfill(context: Any, backfills: bool) -> None:
    assert is_backfill(context) is backfills


@pytest.mark.parametrize("start", [Committed(), Earliest(), Explicit({0: 5})], ids=repr)
@pytest.mark.parametrize("end", [Latest(), Explicit({0: 9})], ids=repr)
def test_a_backfill_reads_its_interval_whatever_the_pipeline_reads(start: OffsetLimit, end: OffsetLimit) -> None:
    wishes = Wishes(start, end, (0, 2), max_records=5, max_records_per_partition=2)
    assert of_interval(wishes, run_of()) == Wishes(At(NOON_MS), At(ONE_MS), (0, 2))


def test_moments_are_the_pipelines_own_to_choose() -> None:
    before = At(NOON_MS - 60_000)
    assert of_interval(Wishes(before, Latest()), run_of()) == Wishes(before, At(ONE_MS))
    assert of_interval(Wishes(before, At(5 * NOON_MS)), run_of(None, None)).end == At(5 * NOON_MS)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (run_of(end=NOON), r"its data interval is empty, .*CronDataIntervalTimetable.*kpipe_backfill_task_group"),
        (run_of(None, None), r"without a data interval, .*CronDataIntervalTimetable.*kpipe_backfill_task_group"),
    ],
)
def test_a_backfill_without_an_interval_says_what_to_write(run: Any, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        of_interval(Wishes(), run)


@pytest.mark.parametrize("end", [Latest(), Explicit({0: 9})], ids=repr)
def test_a_start_at_an_interval_without_length_says_what_to_write(end: OffsetLimit) -> None:
    with pytest.raises(
        PlanError, match=r"starts and ends at 2026.*12:00:00.*nothing before it.*CronDataIntervalTimetable"
    ):
        check_interval(Wishes(At(NOON_MS), end), run_of(end=NOON))


@pytest.mark.parametrize(
    ("wishes", "run"),
    [
        (Wishes(), run_of(end=NOON)),
        (Wishes(Earliest(), At(NOON_MS)), run_of(end=NOON)),
        (Wishes(At(NOON_MS - 1), Latest()), run_of(end=NOON)),
        (Wishes(At(NOON_MS), At(ONE_MS)), run_of(end=NOON)),
        (Wishes(At(NOON_MS), Latest()), run_of()),
        (Wishes(At(NOON_MS), Latest()), run_of(None, None)),
        (Wishes(At(NOON_MS), Latest()), {}),
    ],
)
def test_other_starts_than_an_interval_without_length_are_taken(wishes: Wishes, run: Any) -> None:
    check_interval(wishes, run)
