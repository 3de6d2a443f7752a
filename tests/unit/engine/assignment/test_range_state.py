from __future__ import annotations

from typing import Any

import pytest
from plans import plan_of

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import Counts, Ending, PartitionProgress, Pieces, StoredProgress
from kpipe_engine.assignment.range_state import Lane
from kpipe_engine.errors import PartitionStoppedError, PipelineStoppedError

PLANNED = PartitionRange(3, 10, 100, None)
FAULT = Fault.of(ValueError("x"), "kafka", "destination")
LEASE = Lease(4, 5, 1)


@pytest.fixture
def lane() -> Lane:
    """Nothing here is handled by anybody."""
    return Lane(PLANNED)


def stored(lane: Lane) -> StoredProgress:
    return lane.to_store(plan_of(PLANNED), LEASE)


def progress(next_offset: int, **more: Any) -> PartitionProgress:
    return PartitionProgress(PLANNED, next_offset, Counts(), **more)


def test_at_first_all_is_ahead(lane: Lane) -> None:
    assert (lane.handled, lane.stored, lane.works, lane.is_settled, lane.has_news) == (10, 10, True, False, False)
    assert lane.progress == progress(10)


def test_what_is_handled_is_news_until_it_is_stored(lane: Lane) -> None:
    lane.advance(40)
    assert (lane.handled, lane.stored, lane.has_news) == (40, 10, True)
    assert lane.progress.next_offset == 10
    lane.note_stored()
    assert (lane.stored, lane.has_news, lane.works) == (40, False, True)


def test_at_its_end_it_is_settled_once_that_is_stored(lane: Lane) -> None:
    lane.advance(100)
    assert (lane.works, lane.is_settled) == (True, False)
    lane.note_stored()
    assert (lane.works, lane.is_settled, lane.progress.complete) == (False, True, True)


def test_it_stops_at_a_fault_and_is_settled_once_that_is_stored(lane: Lane) -> None:
    lane.advance(40)
    lane.stop(PartitionStoppedError("offset 42: broken", 42))
    assert (lane.ended, lane.reason, lane.handled) == ("stopped", "offset 42: broken", 42)
    assert (lane.works, lane.is_settled) == (False, False)
    lane.note_stored()
    assert (lane.is_settled, lane.progress.state) == (True, "stopped")


def test_a_stop_that_names_no_offset_leaves_what_is_handled(lane: Lane) -> None:
    lane.advance(40)
    lane.stop(PartitionStoppedError("no answer"))
    assert lane.handled == 40


@pytest.mark.parametrize(
    ("stop", "stops_run"), [(PartitionStoppedError("why"), False), (PipelineStoppedError("why"), True)], ids=repr
)
def test_whether_the_run_is_to_stop_is_stored(lane: Lane, stop: PartitionStoppedError, stops_run: bool) -> None:
    lane.stop(stop)
    assert (stored(lane).reason, stored(lane).ended, stored(lane).stops_run) == ("why", "stopped", stops_run)


def test_an_end_without_an_offset_is_news_too(lane: Lane) -> None:
    lane.end("yielded", "the task was stopped")
    assert (lane.has_news, lane.is_settled) == (True, False)
    lane.note_stored()
    assert (lane.has_news, lane.is_settled) == (False, True)


def test_what_is_not_stored_is_forgotten(lane: Lane) -> None:
    lane.go_on(progress(20, seconds=1.5, done=((50, 60),)))
    lane.advance(40)
    lane.counts.read += 20
    lane.lose(3)
    lane.spend(2.0)
    lane.stop(PipelineStoppedError("why", 40))
    lane.go_on(progress(20, seconds=1.5))
    assert (lane.handled, lane.stored, lane.counts, lane.seconds, lane.done) == (20, 20, Counts(), 1.5, ())
    assert (lane.ended, lane.reason, stored(lane).stops_run, lane.works) == (None, None, False, True)


def test_counts_of_a_chunk_do_not_reach_what_it_goes_on_from(lane: Lane) -> None:
    before = progress(20)
    lane.go_on(before)
    lane.counts.read += 1
    lane.lose(2)
    assert (before.counts, lane.counts) == (Counts(), Counts(read=1, lost=2))


@pytest.mark.parametrize("ended", ["stopped", "yielded"])
def test_what_ended_in_an_earlier_attempt_is_tried_again(lane: Lane, ended: Ending) -> None:
    lane.go_on(progress(20, reason="why", ended=ended))
    assert (lane.ended, lane.reason, lane.works) == (None, None, True)


def test_what_is_somebody_elses_is_over_and_nothing_of_it_is_stored(lane: Lane) -> None:
    lane.go_on(PartitionProgress.revoked(PLANNED, "newer"))
    lane.advance(40)
    assert (lane.is_revoked, lane.works, lane.has_news, lane.is_settled) == (True, False, False, True)
    assert lane.reason == "run newer took the partition over"


def test_pieces_of_a_run_before_are_unsettled_until_they_are_taken_over(lane: Lane) -> None:
    inherited = Counts(read=3)
    lane.go_on(progress(20, done=((50, 60),), took_over="older", inherited=inherited), unsettled=Pieces(2, 4))
    assert stored(lane).unsettled == Pieces(2, 4)
    lane.take_over([(50, 60), (70, 80)], Counts(read=4))
    assert (stored(lane).unsettled, stored(lane).took_over, stored(lane).inherited) == (None, "older", Counts(read=7))
    assert lane.skips == ((50, 60), (70, 80))


def test_a_record_is_news_once(lane: Lane) -> None:
    assert lane.learn({15: FAULT})
    assert not lane.learn({15: FAULT})
    assert not lane.learn({})
    assert lane.learn({15: FAULT, 17: FAULT})


def test_a_chunk_that_is_redone_ends_behind_the_last_record_known_to_fault(lane: Lane) -> None:
    assert (lane.room(1_000), lane.is_at_known_fault) == (1_000, False)
    lane.learn({15: FAULT, 12: FAULT})
    assert (lane.room(1_000), lane.room(2)) == (6, 2)
    lane.advance(15)
    assert (lane.room(1_000), lane.is_at_known_fault) == (1, False)
    lane.advance(16)
    assert lane.is_at_known_fault
    lane.forget_faults()
    assert (lane.room(1_000), lane.is_at_known_fault) == (1_000, False)


def test_it_is_suspect_until_what_the_failed_chunk_had_read_is_behind(lane: Lane) -> None:
    lane.advance(40)
    assert not lane.is_suspect
    lane.suspect()
    lane.go_on(progress(10))
    assert lane.is_suspect
    # A shorter try that fails, too, does not end it sooner.
    lane.advance(20)
    lane.suspect()
    lane.advance(39)
    assert lane.is_suspect
    lane.advance(40)
    assert not lane.is_suspect


def test_what_has_ended_is_not_suspect(lane: Lane) -> None:
    lane.advance(40)
    lane.suspect()
    lane.go_on(PartitionProgress.revoked(PLANNED, "newer"))
    assert not lane.is_suspect
