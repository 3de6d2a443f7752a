from __future__ import annotations

import pytest

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from kpipe_engine.assignment.care import Care, Suspicion
from kpipe_engine.assignment.caution import Caution
from kpipe_engine.assignment.range_state import Lane

MOST = 1_000


@pytest.fixture
def lanes() -> list[Lane]:
    return [Lane(PartitionRange(partition, 0, 5_000, None)) for partition in (1, 2)]


def test_where_nobody_is_suspected_chunks_have_their_size(lanes: list[Lane]) -> None:
    caution = Caution(Care(), MOST)
    assert caution.lanes(lanes) == ()
    assert caution.records(lanes) == MOST
    assert caution.is_at_ease


def test_it_goes_up_to_what_is_suspected_and_then_on_in_small_chunks_of_one_partition(lanes: list[Lane]) -> None:
    caution = Caution(Care(True, Suspicion(2, 300, 400, 30)), MOST)
    assert caution.lanes(lanes) == [lanes[1]]
    assert caution.records([lanes[1]]) == 300
    lanes[1].advance(300)
    caution.relax()
    assert caution.records([lanes[1]]) == 30
    lanes[1].advance(330)
    caution.relax()
    assert caution.lanes(lanes) == [lanes[1]]
    assert caution.records([lanes[1]]) == 30
    assert not caution.is_at_ease


def test_no_chunk_is_larger_than_the_pipeline_allows(lanes: list[Lane]) -> None:
    assert Caution(Care(True, Suspicion(2, 3_000, 4_000, 30)), MOST).records([lanes[1]]) == MOST
    assert Caution(Care(True, Suspicion(2, None, 4_000, 15_000)), MOST).records([lanes[1]]) == MOST


def test_what_is_stored_is_suspected_no_further(lanes: list[Lane]) -> None:
    """Everything since then is, where the suspicion has no beginning."""
    caution = Caution(Care(True, Suspicion(2, None, 400, 5)), MOST)
    assert caution.records(caution.lanes(lanes)) == 5


def test_behind_what_was_suspected_all_go_on_in_chunks_that_grow(lanes: list[Lane]) -> None:
    caution = Caution(Care(True, Suspicion(2, 300, 400, 1)), MOST)
    lanes[1].advance(400)
    sizes = []
    for _ in range(5):
        assert list(caution.lanes(lanes)) == []
        sizes.append((caution.records(lanes), caution.is_at_ease))
        caution.relax()
    assert sizes == [(1, False), (8, False), (64, False), (512, False), (MOST, True)]


def test_a_partition_that_has_ended_is_suspected_no_more(lanes: list[Lane]) -> None:
    caution = Caution(Care(True, Suspicion(2, 300, 400, 1)), MOST)
    assert caution.lanes(lanes[:1]) == []
    caution.relax()
    assert caution.records(lanes[:1]) == 8


def test_after_a_death_nothing_is_fetched_ahead_until_chunks_have_their_size_again(lanes: list[Lane]) -> None:
    caution = Caution(Care(True, Suspicion(2, None, 400, 1)), MOST)
    assert caution.is_alone
    lanes[1].advance(400)
    found = []
    for _ in range(5):
        caution.lanes(lanes)
        found.append((caution.records(lanes), caution.is_alone))
        caution.relax()
    assert found == [(1, True), (8, True), (64, True), (512, True), (MOST, False)]


def test_after_a_death_over_nothing_chunks_begin_with_one_record(lanes: list[Lane]) -> None:
    caution = Caution(Care(follows_death=True), MOST)
    assert (caution.records(lanes), caution.is_alone, caution.is_at_ease) == (1, True, False)


def test_a_worker_that_has_just_followed_a_dead_one_is_never_at_ease(lanes: list[Lane]) -> None:
    caution = Caution(Care(follows_death=True), 1)
    assert not caution.is_at_ease
    caution.relax()
    assert caution.is_at_ease


def test_what_is_suspected_for_another_reason_than_a_death_may_be_fetched_ahead() -> None:
    caution = Caution(Care(), MOST)
    caution.suspect(Suspicion(2, 300, 400, 1))
    assert not caution.is_alone
