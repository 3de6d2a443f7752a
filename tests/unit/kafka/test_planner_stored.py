"""What a plan makes of progress that a run stored and no checkpoint has published."""

from __future__ import annotations

import logging

import pytest

from airflow_provider_kpipe.contract.checkpoint import CommitMark
from airflow_provider_kpipe.contract.offsets import Committed, Earliest, OffsetLimit
from airflow_provider_kpipe.contract.progress import Counts, StoredProgress, mark_of
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.kafka.planner import Snapshot, Wishes, plan_ranges
from airflow_provider_kpipe.kafka.positions import GroupOffset


def stored(
    next_offset: int, base: int | None, continues_group: bool = True, base_mark: str | None = None
) -> GroupOffset:
    progress = StoredProgress("dag/before/plan", 100, base, continues_group, Counts(), base_mark=base_mark)
    return GroupOffset(next_offset, progress.to_metadata())


def start_of(
    committed: int | None,
    beside: GroupOffset | None,
    latest: int = 200,
    start: OffsetLimit | None = None,
    published: int | None = None,
    committed_by: str | None = None,
) -> int:
    mark = committed_by and CommitMark(committed_by).to_text()
    snapshot = Snapshot(
        topic="orders",
        earliest={0: 100},
        latest={0: latest},
        at={},
        committed={} if committed is None else {0: GroupOffset(committed, mark)},
        stored={} if beside is None else {0: beside},
        published={} if published is None else {0: published},
    )
    (planned,) = plan_ranges(Wishes(start=start or Committed()), snapshot)
    assert planned.committed == committed
    return planned.start


@pytest.mark.parametrize(("committed", "next_offset"), [(120, 160), (120, 121), (120, 200), (None, 160), (None, 0)])
def test_a_plan_goes_on_from_what_was_stored_and_never_published(
    committed: int | None, next_offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert start_of(committed, stored(next_offset, base=committed)) == next_offset
    assert f"partition 0: going on at {next_offset}, stored by run dag/before/plan" in caplog.text


def test_a_missing_committed_offset_is_no_error_where_a_run_stored_from_there() -> None:
    assert start_of(None, stored(160, base=None), start=Committed("error")) == 160


@pytest.mark.parametrize(
    ("committed", "base", "start"),
    [(110, 120, 110), (130, 120, 130), (130, None, 130), (None, 120, 100)],
    ids=["reset backwards", "moved forwards", "committed meanwhile", "deleted or expired"],
)
def test_the_group_decides_where_someone_has_moved_it_and_the_log_says_so(
    committed: int | None, base: int | None, start: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert start_of(committed, stored(160, base=base), start=Committed("earliest")) == start
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    said = f"somebody put the group at {committed} after run dag/before/plan found it at {base} and stored 160"
    assert said in record.getMessage()


def test_the_group_decides_where_someone_has_reset_it_to_where_the_last_run_began() -> None:
    """A run had put it there; it is there again, and no run has put it there."""
    assert start_of(120, stored(160, base=120, base_mark=mark_of("dag/long-ago/plan"))) == 120
    assert start_of(120, stored(160, base=120)) == 160


def test_a_checkpoint_that_published_where_the_last_run_began_does_not_have_its_records_read_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """That run was planned before, and its worker goes on from there too."""
    with caplog.at_level(logging.INFO):
        assert start_of(100, stored(150, base=None), committed_by="a third") == 150
    assert "partition 0: going on at 150, stored by run dag/before/plan" in caplog.text
    assert start_of(120, stored(150, base=None), committed_by="a third") == 120
    assert start_of(100, stored(150, base=None)) == 100


@pytest.mark.parametrize(
    ("beside", "published", "known"),
    [
        (None, 120, 120),
        (stored(160, base=120), None, 120),
        (stored(160, base=0), None, 0),
        (stored(160, base=120, continues_group=False), None, 120),
        (stored(160, base=120), 160, 160),
    ],
    ids=["checkpoint", "stored", "stored from 0", "a published backfill's", "both"],
)
def test_a_group_that_is_known_to_have_held_an_offset_does_not_start_over_in_silence(
    beside: GroupOffset | None, published: int | None, known: int
) -> None:
    with pytest.raises(PlanError, match=f"no committed offset, though an earlier run knew it at {known}: it has exp"):
        start_of(None, beside, published=published)
    assert start_of(None, beside, published=published, start=Committed("earliest")) == 100
    assert start_of(None, beside, published=published, start=Committed("latest")) == 200


@pytest.mark.parametrize("beside", [None, GroupOffset(160, "by hand"), stored(160, base=None, continues_group=False)])
def test_a_new_group_starts_at_the_beginning(beside: GroupOffset | None) -> None:
    assert start_of(None, beside) == 100


def test_a_group_whose_offsets_expired_is_an_error_where_it_was_said() -> None:
    with pytest.raises(PlanError, match="the group has no committed offset"):
        start_of(None, stored(160, base=120), start=Committed("error"))


@pytest.mark.parametrize(
    "beside",
    [
        stored(160, base=120, continues_group=False),
        GroupOffset(160, None),
        GroupOffset(160, "by hand"),
        stored(120, base=120),
        stored(110, base=120),
        stored(120, base=100),
        None,
    ],
    ids=["a backfill's", "no metadata", "foreign metadata", "no further", "behind", "published", "nothing"],
)
def test_what_is_stored_is_passed_over_in_silence_where_it_says_nothing_about_the_group(
    beside: GroupOffset | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert start_of(120, beside) == 120
    assert not caplog.records


def test_what_is_stored_matters_only_to_a_plan_that_continues_the_group() -> None:
    assert start_of(120, stored(160, base=120), start=Earliest()) == 100


def test_what_is_stored_above_the_end_of_the_log_is_an_error() -> None:
    with pytest.raises(PlanError, match="above the end of the log, 150"):
        start_of(120, stored(160, base=120), latest=150)
