from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.progress import (
    Counts,
    PartitionProgress,
    PartitionState,
    StoredProgress,
)


def stored(run_key: str = "dag/run/plan", *, counts: Counts | None = None, reason: str | None = None) -> StoredProgress:
    return StoredProgress(run_key, 7, "id", Origin(1), 10, 50, counts or Counts(), reason=reason)


def test_counts_are_added_field_by_field() -> None:
    assert Counts(1, 2, 3, 4, 5, 6, 7) + Counts(10, 20, 30, 40, 50, 60, 70) == Counts(11, 22, 33, 44, 55, 66, 77)


def test_named_counts_add_up() -> None:
    total = Counts(read=1, named={"a": 1, "b": 2}) + Counts(read=2, named={"b": 3, "c": 4})
    assert total == Counts(read=3, named={"a": 1, "b": 5, "c": 4})


def test_a_copy_of_counts_goes_its_own_way() -> None:
    counts = Counts(read=1)
    twin = counts.copy()
    twin.read += 1
    assert (counts.read, twin.read) == (1, 2)


@given(
    made=st.builds(
        StoredProgress,
        run_key=st.text(max_size=100),
        number=st.integers(0, 2**62),
        topic_id=st.text(max_size=30),
        origin=st.builds(Origin, st.integers(0, 2**62), st.none() | st.integers(0, 2**62)),
        start=st.integers(0, 2**62),
        end=st.integers(0, 2**62),
        counts=st.builds(Counts, *[st.integers(0, 2**62)] * 7),
        reason=st.none() | st.text(max_size=100),
    )
)
@settings(deadline=None, max_examples=100)
def test_stored_progress_comes_back_from_metadata_as_it_went(made: StoredProgress) -> None:
    assert StoredProgress.read_text(made.to_text()) == made


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        "",
        "by hand",
        "{",
        "null",
        "[]",
        "{}",
        "[" * 100_000,
    ],
)
def test_an_offset_that_no_worker_stored_is_not_progress(metadata: str | None) -> None:
    assert StoredProgress.read_text(metadata) is None


@pytest.mark.parametrize("changes", [{"schema_version": 2}, {"start": "10"}, {"number": True}], ids=repr)
def test_an_offset_that_another_version_stored_is_never_taken_for_none(changes: dict[str, Any]) -> None:
    metadata = json.dumps({**stored("mine").to_json(), **changes})
    with pytest.raises(DocumentError, match=r"^partition 3: StoredProgress"):
        StoredProgress.read_text(metadata, "partition 3")


RANGE = PartitionRange(3, 100, 200, 90)


@pytest.mark.parametrize(
    ("next_offset", "started", "stopped", "state", "fraction"),
    [
        (100, False, None, "waiting", 0.0),
        (100, True, None, "running", 0.0),
        (150, True, None, "running", 0.5),
        (150, True, "fenced", "stopped", 0.5),
        (200, True, None, "complete", 1.0),
        (200, True, "at the very end", "complete", 1.0),
    ],
)
def test_the_state_of_a_partition(
    next_offset: int, started: bool, stopped: str | None, state: PartitionState, fraction: float
) -> None:
    progress = PartitionProgress(RANGE, next_offset, Counts(), started=started, reason=stopped)
    assert (progress.state, progress.fraction) == (state, fraction)
    assert progress.complete == (state == "complete")


def test_an_empty_range_is_complete_from_the_start() -> None:
    progress = PartitionProgress.not_started(PartitionRange(0, 5, 5, 5))
    assert (progress.state, progress.fraction) == ("complete", 1.0)


def test_completed_pieces_beyond_a_gap_count_as_done() -> None:
    progress = PartitionProgress(RANGE, 110, Counts(), beyond=((130, 150), (160, 180)))
    assert (progress.offsets_completed, progress.fraction) == (50, 0.5)


def test_no_more_than_all_of_a_range_is_ever_done() -> None:
    """What an earlier run has done may reach beyond the end of the range."""
    assert PartitionProgress(RANGE, 500, Counts()).fraction == 1.0
    assert PartitionProgress(RANGE, 110, Counts(), beyond=((150, 900),)).fraction == 0.6
    assert PartitionProgress(RANGE, 110, Counts(), beyond=((150, 160), (700, 900))).fraction == 0.2


def test_inherited_counts_are_part_of_the_total() -> None:
    progress = PartitionProgress(RANGE, 150, Counts(read=50, written=49), inherited=Counts(read=7, written=1))
    assert progress.all_counts == Counts(read=57, written=50)


def test_progress_is_shown_as_plain_json() -> None:
    counts = Counts(read=50, written=49, dead_lettered=1)
    shown = PartitionProgress(RANGE, 150, counts, seconds=0.4).to_json()
    assert json.loads(json.dumps(shown)) == {
        "partition": 3,
        "start": 100,
        "end": 200,
        "stored": 150,
        "state": "running",
        "reason": None,
        "records_per_second": 125.0,
        "read": 50,
        "written": 49,
        "dead_lettered": 1,
        "filtered": 0,
        "skipped": 0,
        "retried": 0,
        "lost": 0,
        "named": {},
        "causes": [],
    }


def test_of_a_piece_whose_progress_has_expired_what_a_checkpoint_told_of_stays_done() -> None:
    planned = PartitionRange(0, 0, 200, None, cuts=(100,))
    first, second = planned.pieces
    stopped = PartitionProgress(first, 40, Counts(read=40))
    forgotten = PartitionProgress.not_started(second).with_done(((100, 200),))
    found = PartitionProgress.of_pieces(planned, [stopped, forgotten])
    assert (found.next_offset, found.beyond) == (40, ((100, 200),))
