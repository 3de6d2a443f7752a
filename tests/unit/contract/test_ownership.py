"""What a worker that takes a partition on goes on from."""

from __future__ import annotations

import dataclasses

import pytest
from plans import plan_of

from airflow_provider_kpipe.contract.lease import Lease
from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.ownership import completed_in_pieces, counts_for, take_on
from airflow_provider_kpipe.contract.progress import Counts, StoredProgress, mark_of

RANGE = PartitionRange(0, 100, 200, 100)
PLANNED_AT = "2026-01-31T12:00:00.000+00:00"
BEFORE, AFTER = "2026-01-31T11:00:00.000+00:00", "2026-01-31T13:00:00.000+00:00"
PLAN = plan_of(RANGE, run_key="mine", created_at=PLANNED_AT)
MINE = Lease(PLANNED_AT, "b", 1)


def held(run_key: str, lease: Lease | None, base: int | None = 100, continues_group: bool = True) -> str:
    counts = Counts(read=7, written=7)
    return StoredProgress(run_key, 100, base, continues_group, counts, lease=lease).to_metadata()


def test_a_partition_that_nobody_has_worked_on_begins_at_the_start() -> None:
    found = take_on(RANGE, PLAN, MINE, None, None)
    assert (found.next_offset, found.counts, found.ended) == (100, Counts(), None)


def test_metadata_of_somebody_else_altogether_means_nothing() -> None:
    assert take_on(RANGE, PLAN, MINE, 150, "their own words").next_offset == 100


def test_an_attempt_goes_on_from_what_the_one_before_stored() -> None:
    found = take_on(RANGE, PLAN, MINE, 150, held("mine", Lease(PLANNED_AT, "a", 5)))
    assert (found.next_offset, found.counts.read, found.took_over) == (150, 7, None)


def test_an_attempt_that_comes_too_late_leaves_the_later_one_alone() -> None:
    for later in (Lease(PLANNED_AT, "c", 0), Lease(PLANNED_AT, "b", 2)):
        found = take_on(RANGE, PLAN, MINE, 150, held("mine", later))
        assert (found.state, found.next_offset) == ("revoked", 100)


def test_an_older_run_is_taken_over_from_where_it_stands() -> None:
    found = take_on(RANGE, PLAN, MINE, 150, held("theirs", Lease(BEFORE, "z", 5)))
    assert (found.next_offset, found.counts, found.took_over) == (150, Counts(), "theirs")


def test_it_may_stand_beyond_our_end() -> None:
    found = take_on(RANGE, PLAN, MINE, 250, held("theirs", Lease(BEFORE, "z", 5)))
    assert (found.next_offset, found.state) == (250, "complete")


def test_an_older_run_from_another_base_is_no_help() -> None:
    assert take_on(RANGE, PLAN, MINE, 150, held("theirs", Lease(BEFORE, "z", 5), base=90)).next_offset == 100


def test_a_checkpoint_that_published_where_the_older_run_began_is_no_other_base() -> None:
    theirs = held("theirs", Lease(BEFORE, "z", 5), base=None)
    published = dataclasses.replace(RANGE, committed_by="a third")
    assert take_on(published, PLAN, MINE, 150, theirs).next_offset == 150
    # Somebody who has reset the group there leaves no mark, and wants the records again.
    assert take_on(RANGE, PLAN, MINE, 150, theirs).next_offset == 100


def test_a_run_over_a_window_neither_takes_over_nor_is_taken_over() -> None:
    window = dataclasses.replace(PLAN, continues_group=False)
    assert take_on(RANGE, window, MINE, 150, held("theirs", Lease(BEFORE, "z", 5))).next_offset == 100
    theirs = held("theirs", Lease(BEFORE, "z", 5), continues_group=False)
    assert take_on(RANGE, PLAN, MINE, 150, theirs).next_offset == 100


def test_a_newer_run_has_the_partition() -> None:
    found = take_on(RANGE, PLAN, MINE, 150, held("theirs", Lease(AFTER, "a", 0)))
    assert (found.state, found.reason) == ("revoked", "run theirs took the partition over")


@pytest.mark.parametrize(
    ("base", "based_on", "committed", "committed_by", "counts"),
    [
        (100, None, 100, None, True),
        (None, None, None, None, True),
        (100, "before", 100, "before", True),
        (100, "before", 100, None, False),
        (90, None, 120, "theirs", True),
        (90, None, 120, "before theirs", True),
        (None, None, 100, "a third", True),
        (None, None, 100, None, False),
        (None, None, 120, "a third", False),
        (90, None, 120, None, False),
        (100, None, None, None, False),
    ],
    ids=[
        "it stands where it stood",
        "it is as new as it was",
        "the same run put it there",
        "it was reset to where it stood",
        "its own checkpoint came while it was at work",
        "so did that of the run it took over",
        "a checkpoint published where it began",
        "somebody put it where it began",
        "a checkpoint published something else",
        "somebody moved it",
        "it was deleted",
    ],
)
def test_what_is_stored_counts_for_whoever_finds_the_group_where_that_run_left_it(
    base: int | None, based_on: str | None, committed: int | None, committed_by: str | None, counts: bool
) -> None:
    found = StoredProgress("theirs", 100, base, True, Counts(), took_over="before theirs", base_mark=mark_of(based_on))
    assert counts_for(found, committed, committed_by, continues_group=True) is counts
    # A run over a window has nothing to do with where the group stands.
    assert not counts_for(found, committed, committed_by, continues_group=False)
    window = dataclasses.replace(found, continues_group=False)
    assert not counts_for(window, committed, committed_by, continues_group=True)


def test_of_what_lies_in_the_groups_of_pieces_only_that_of_the_run_counts() -> None:
    pieces = [
        (150, held("theirs", Lease(BEFORE, "a", 0))),
        (160, held("theirs", None)),
        (170, held("theirs", Lease(AFTER, "a", 0))),
        (180, held("mine", Lease(BEFORE, "a", 0))),
        (190, "their own words"),
        (-1001, None),
    ]
    assert completed_in_pieces("theirs", BEFORE, pieces) == [(100, 150), (100, 160)]
    # Of a run before the one before, only the key is known.
    assert completed_in_pieces("theirs", None, pieces) == [(100, 150), (100, 160), (100, 170)]
    assert completed_in_pieces(None, None, pieces) == []
