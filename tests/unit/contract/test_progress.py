from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.lease import Lease
from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.progress import (
    METADATA_BYTES,
    STOP_REASON_CHARACTERS,
    Counts,
    PartitionProgress,
    PartitionState,
    StoredProgress,
)
from airflow_provider_kpipe.contract.strict_json import DocumentError

# Ids of up to 250 characters each, as Airflow allows them for a DAG, a run and a task, and a map index.
LONGEST_RUN_KEY = "/".join(["d" * 250, "r" * 250, "t" * 250]) + "[1023]"
MANY = Counts(*[2**62] * 7)


def stored(
    run_key: str = "dag/run/plan", *, base: int | None = 10, counts: Counts | None = None, reason: str | None = None
) -> StoredProgress:
    return StoredProgress(
        run_key=run_key, start=10, base=base, continues_group=True, counts=counts or Counts(), reason=reason
    )


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
        start=st.integers(0, 2**62),
        base=st.none() | st.integers(0, 2**62),
        continues_group=st.booleans(),
        counts=st.builds(Counts, *[st.integers(0, 2**62)] * 7),
        reason=st.none() | st.text(max_size=100),
    )
)
@settings(deadline=None, max_examples=100)
def test_stored_progress_comes_back_from_metadata_as_it_went(made: StoredProgress) -> None:
    assert StoredProgress.read_text(made.to_metadata()) == made


@given(reason=st.text(max_size=2_000))
@settings(deadline=None, max_examples=100)
def test_metadata_fits_the_broker_whatever_the_language_of_the_stop_reason(reason: str) -> None:
    metadata = stored(LONGEST_RUN_KEY, counts=MANY, reason=reason).to_metadata()
    assert len(metadata.encode()) <= METADATA_BYTES


@pytest.mark.parametrize("letter", ["a", '"', "\n", "é", "漢", "🙂"])
def test_a_long_stop_reason_keeps_its_beginning(letter: str) -> None:
    metadata = stored(LONGEST_RUN_KEY, counts=MANY, reason=letter * 5_000).to_metadata()
    found = StoredProgress.read_text(metadata)
    assert len(metadata.encode()) <= METADATA_BYTES
    assert found is not None
    assert found.reason is not None
    assert 100 <= len(found.reason) <= STOP_REASON_CHARACTERS
    assert set(found.reason) == {letter}


@pytest.mark.parametrize("room", [50, 150, 1_000])
def test_a_stop_reason_never_makes_the_progress_impossible_to_store(room: int) -> None:
    run_key = "k" * (METADATA_BYTES - room - len(stored("").to_metadata()))
    found = StoredProgress.read_text(stored(run_key, reason="🙂" * 600).to_metadata())
    assert found is not None
    assert found.run_key == run_key
    assert found.reason


@pytest.mark.parametrize("stopped", [None, "the broker is gone"])
def test_a_run_key_that_is_too_long_is_refused_and_says_what_to_shorten(stopped: str | None) -> None:
    with pytest.raises(DocumentError, match=r"the run key 'kkk.*shorter DAG id, run id or task id"):
        stored("k" * 5_000, reason=stopped).to_metadata()


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


@pytest.mark.parametrize("changes", [{"schema_version": 2}, {"start": "10"}, {"base": True}], ids=repr)
def test_an_offset_that_another_version_stored_is_never_taken_for_none(changes: dict[str, Any]) -> None:
    metadata = json.dumps({**stored("mine").to_json(), **changes})
    with pytest.raises(DocumentError, match=r"^partition 3: StoredProgress"):
        PartitionProgress.of(RANGE, "mine", 120, metadata, "2026-01-31T10:00:00+00:00")


RANGE = PartitionRange(3, 100, 200, 90)


def test_progress_of_this_run_counts() -> None:
    metadata = stored("mine", counts=Counts(read=20, written=20), reason="why").to_metadata()
    progress = PartitionProgress.of(RANGE, "mine", 120, metadata, "2026-01-31T10:00:00+00:00")
    assert progress == PartitionProgress(RANGE, 120, Counts(read=20, written=20), reason="why")


@pytest.mark.parametrize(
    ("offset", "metadata"),
    [
        (None, None),
        (120, None),
        (120, "by hand"),
        (120, stored("another").to_metadata()),
        (None, stored("mine").to_metadata()),
    ],
    ids=["nothing stored", "no metadata", "foreign metadata", "another run", "no offset"],
)
def test_what_another_run_stored_does_not_count(offset: int | None, metadata: str | None) -> None:
    progress = PartitionProgress.of(RANGE, "mine", offset, metadata, "2026-01-31T10:00:00+00:00")
    assert progress == PartitionProgress(RANGE, 100, Counts(), started=False)


def test_a_newer_run_that_began_behind_the_range_says_that_this_one_was_published() -> None:
    lease = Lease("2026-01-31T11:00:00+00:00", "first", 1)
    newer = dataclasses.replace(stored("newer"), base=200, lease=lease)
    progress = PartitionProgress.of(RANGE, "mine", 250, newer.to_metadata(), "2026-01-31T10:00:00+00:00")
    assert (progress.state, progress.reason, progress.ended) == ("complete", None, "revoked")
    within = dataclasses.replace(newer, base=150)
    progress = PartitionProgress.of(RANGE, "mine", 250, within.to_metadata(), "2026-01-31T10:00:00+00:00")
    assert (progress.state, progress.reason) == ("revoked", "run newer took the partition over")


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
    progress = PartitionProgress.of(PartitionRange(0, 5, 5, 5), "mine", None, None, "")
    assert (progress.state, progress.fraction) == ("complete", 1.0)


def test_what_pieces_have_done_beyond_a_gap_is_part_of_what_is_done() -> None:
    progress = PartitionProgress(RANGE, 110, Counts(), beyond=((130, 150), (160, 180)))
    assert (progress.offsets_completed, progress.fraction) == (50, 0.5)


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
    }
