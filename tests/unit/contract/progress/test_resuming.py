from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.checkpoint import CommitMark
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import Counts, StoredProgress
from airflow_provider_kpipe.contract.progress.resuming import committed_beyond, progress_of, take_on, unknown_partitions
from airflow_provider_kpipe.contract.progress.standing import Held, Stored
from tests.kit.plans import plan_of

TOPIC = "abc"
ORIGIN = Origin(3, 10)
RANGE = PartitionRange(0, 40, 100, 40, origin=ORIGIN)
PLAN = replace(plan_of(RANGE), run_key="run-2", number=2, topic_id=TOPIC)
LEASE = Lease(2, 7, 1)


def marked(offset: int, **changes: Any) -> Held:
    """Where a checkpoint has taken the group."""
    return Held(offset, replace(CommitMark("run-1", 1, TOPIC, ORIGIN), **changes))


def stored(offset: int, **changes: Any) -> Stored:
    """What the run before has stored."""
    progress = StoredProgress("run-1", 1, TOPIC, ORIGIN, 10, 100, Counts(read=5), lease=Lease(1, 5, 0))
    return Stored(offset, replace(progress, **changes))


def test_a_newer_lease_revokes_an_older_one() -> None:
    found = take_on(RANGE, PLAN, LEASE, stored(70, lease=Lease(3, 1, 0), run_key="run-3"))
    assert (found.ended, found.started) == ("revoked", False)
    assert "run run-3 took the partition over" in str(found.reason)


def test_a_run_goes_on_from_the_one_that_it_follows() -> None:
    found = take_on(RANGE, PLAN, LEASE, stored(70))
    assert (found.next_offset, found.took_over, found.done) == (70, "run-1", ((40, 70),))
    assert found.inherited == Counts(read=5)


def test_and_from_where_its_own_attempt_before_has_stored() -> None:
    found = take_on(RANGE, PLAN, LEASE, stored(70, run_key="run-2", number=2, lease=Lease(2, 6, 4)))
    assert (found.next_offset, found.counts, found.took_over) == (70, Counts(read=5), None)


def test_but_not_from_one_of_a_time_before_a_reset() -> None:
    found = take_on(RANGE, PLAN, LEASE, stored(70, origin=Origin(2, 0)))
    assert (found.next_offset, found.started, found.took_over) == (40, False, None)


@pytest.mark.parametrize(("offset", "goes_on_at"), [(40, 40), (70, 70), (500, 100)])
def test_the_group_decides_if_the_stored_progress_is_gone(offset: int, goes_on_at: int) -> None:
    for found in (take_on(RANGE, PLAN, LEASE, None, marked(offset)), progress_of(RANGE, PLAN, None, marked(offset))):
        assert (found.next_offset, found.started) == (goes_on_at, False)
    assert take_on(RANGE, PLAN, LEASE, None).next_offset == 40


def test_so_does_what_pieces_have_completed_above_where_the_group_stands() -> None:
    reached = marked(50, beyond=((60, 70),))
    for found in (take_on(RANGE, PLAN, LEASE, None, reached), progress_of(RANGE, PLAN, None, reached)):
        assert (found.next_offset, found.done) == (50, ((60, 70),))
    followed = take_on(RANGE, PLAN, LEASE, stored(55), reached)
    assert (followed.next_offset, followed.done) == (55, ((40, 55), (60, 70)))


@pytest.mark.parametrize(("offset", "inherited"), [(40, 5), (69, 5), (70, 0)])
def test_counts_that_a_checkpoint_has_told_of_are_not_told_again(offset: int, inherited: int) -> None:
    assert take_on(RANGE, PLAN, LEASE, stored(70), marked(offset)).inherited == Counts(read=inherited)


@pytest.mark.parametrize(
    ("held", "counts"),
    [
        (marked(41), True),
        (marked(40), False),
        (marked(40, beyond=((60, 70),)), True),
        (marked(41, origin=Origin(4, 10)), False),
        (marked(41, topic_id="gone"), False),
        (marked(41, owner="another"), False),
        (Held(41), False),
    ],
    ids=[
        "further",
        "where it was",
        "pieces above",
        "of another origin",
        "of another topic",
        "of another pipeline",
        "of somebody else",
    ],
)
def test_checkpoints_that_have_come_since_the_plan_count(held: Held, counts: bool) -> None:
    assert (0 in committed_beyond(PLAN, {0: [marked(40), held]})) is counts


def test_but_not_those_that_the_plan_knows_of() -> None:
    known = replace(RANGE, done=((50, 55), (60, 70)))
    assert committed_beyond(replace(PLAN, ranges=(known,)), {0: [marked(40, beyond=((60, 70),))]}) == {}


@pytest.mark.parametrize(("start", "complete"), [(90, False), (100, True)])
def test_a_newer_run_that_begins_behind_the_range_found_it_complete(start: int, complete: bool) -> None:
    found = progress_of(RANGE, PLAN, stored(120, number=3, start=start, end=200, lease=Lease(3, 9, 0)))
    assert (found.ended, found.complete) == ("revoked", complete)


def test_but_not_where_only_a_piece_beyond_its_first_begins_behind_one_of_ours() -> None:
    piece = replace(RANGE, start=60, end=80, slot=1)
    found = progress_of(piece, PLAN, stored(80, number=3, start=80, end=200, lease=Lease(3, 9, 0)))
    assert (found.ended, found.complete, found.next_offset) == ("revoked", False, 60)


@pytest.mark.parametrize(
    ("known", "further", "unknown"),
    [
        ({}, {}, [0, 1]),
        ({0: [0]}, {}, [0, 1]),
        ({0: [0], 1: [0]}, {}, [1]),
        ({0: [0, 1], 1: [0]}, {}, []),
        ({0: [1]}, {0: marked(50)}, []),
    ],
    ids=["nothing", "only the first of two pieces", "both", "all", "a checkpoint has come further"],
)
def test_of_a_partition_something_is_known_where_each_piece_or_a_checkpoint_has_left_something(
    known: dict[int, list[int]], further: dict[int, Held], unknown: list[int]
) -> None:
    empty = PartitionRange(2, 10, 10, 10, origin=ORIGIN)
    plan = replace(PLAN, ranges=(replace(RANGE, cuts=(70,)), replace(RANGE, partition=1), empty))
    assert unknown_partitions(plan, known, further) == unknown
