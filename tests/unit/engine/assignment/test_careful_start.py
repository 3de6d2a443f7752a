from __future__ import annotations

import pytest

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from kpipe_engine.assignment.careful_start import CarefulStart
from kpipe_engine.assignment.precautions import Precautions, Suspicion
from kpipe_engine.assignment.range_state import RangeState

MOST = 1_000


@pytest.fixture
def states() -> list[RangeState]:
    return [RangeState(PartitionRange(partition, 0, 5_000, None)) for partition in (1, 2)]


def test_chunks_have_their_size_without_a_suspect(states: list[RangeState]) -> None:
    caution = CarefulStart(Precautions(), MOST)
    assert caution.states(states) == ()
    assert caution.records(states) == MOST
    assert caution.is_at_ease


def test_it_goes_up_to_what_is_suspected_and_then_on_in_small_chunks_of_one_partition(states: list[RangeState]) -> None:
    caution = CarefulStart(Precautions(True, Suspicion(2, 300, 400, 30)), MOST)
    assert caution.states(states) == [states[1]]
    assert caution.records([states[1]]) == 300
    states[1].advance(300)
    caution.relax()
    assert caution.records([states[1]]) == 30
    states[1].advance(330)
    caution.relax()
    assert caution.states(states) == [states[1]]
    assert caution.records([states[1]]) == 30
    assert not caution.is_at_ease


def test_no_chunk_is_larger_than_the_pipeline_allows(states: list[RangeState]) -> None:
    assert CarefulStart(Precautions(True, Suspicion(2, 3_000, 4_000, 30)), MOST).records([states[1]]) == MOST
    assert CarefulStart(Precautions(True, Suspicion(2, None, 4_000, 15_000)), MOST).records([states[1]]) == MOST


def test_stored_records_are_no_longer_suspect(states: list[RangeState]) -> None:
    """Everything since then is, where the suspicion has no beginning."""
    caution = CarefulStart(Precautions(True, Suspicion(2, None, 400, 5)), MOST)
    assert caution.records(caution.states(states)) == 5


def test_behind_what_was_suspected_all_go_on_in_chunks_that_grow(states: list[RangeState]) -> None:
    caution = CarefulStart(Precautions(True, Suspicion(2, 300, 400, 1)), MOST)
    states[1].advance(400)
    sizes = []
    for _ in range(5):
        assert list(caution.states(states)) == []
        sizes.append((caution.records(states), caution.is_at_ease))
        caution.relax()
    assert sizes == [(1, False), (8, False), (64, False), (512, False), (MOST, True)]


def test_a_partition_that_has_ended_is_suspected_no_more(states: list[RangeState]) -> None:
    caution = CarefulStart(Precautions(True, Suspicion(2, 300, 400, 1)), MOST)
    assert caution.states(states[:1]) == []
    caution.relax()
    assert caution.records(states[:1]) == 8


def test_after_a_death_nothing_is_fetched_ahead_until_chunks_have_their_size_again(states: list[RangeState]) -> None:
    caution = CarefulStart(Precautions(True, Suspicion(2, None, 400, 1)), MOST)
    assert caution.is_alone
    states[1].advance(400)
    found = []
    for _ in range(5):
        caution.states(states)
        found.append((caution.records(states), caution.is_alone))
        caution.relax()
    assert found == [(1, True), (8, True), (64, True), (512, True), (MOST, False)]


def test_after_a_death_over_nothing_chunks_begin_with_one_record(states: list[RangeState]) -> None:
    caution = CarefulStart(Precautions(follows_death=True), MOST)
    assert (caution.records(states), caution.is_alone, caution.is_at_ease) == (1, True, False)


def test_a_worker_that_has_just_followed_a_dead_one_is_never_at_ease(states: list[RangeState]) -> None:
    caution = CarefulStart(Precautions(follows_death=True), 1)
    assert not caution.is_at_ease
    caution.relax()
    assert caution.is_at_ease


def test_a_suspect_without_a_death_may_be_fetched_ahead() -> None:
    caution = CarefulStart(Precautions(), MOST)
    caution.suspect(Suspicion(2, 300, 400, 1))
    assert not caution.is_alone
