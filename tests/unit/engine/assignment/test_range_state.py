from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import pytest

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import Counts, Ending, PartitionProgress, Pieces, StoredProgress
from kpipe_engine.assignment import range_state as module
from kpipe_engine.assignment.range_state import Phase, RangeState
from kpipe_engine.errors import PartitionHaltedError, PipelineHaltedError
from tests.kit.plans import plan_of

PLANNED = PartitionRange(3, 10, 100, None)
FAULT = Fault.of(ValueError("x"), "kafka", "destination")
LEASE = Lease(4, 5, 1)


@pytest.fixture
def state() -> RangeState:
    """Claimed, and nothing of it is handled by anybody."""
    made = RangeState(PLANNED)
    made.claim()
    return made


def stored(state: RangeState) -> StoredProgress:
    return state.to_stored_progress(plan_of(PLANNED), LEASE)


def progress(next_offset: int, **more: Any) -> PartitionProgress:
    return PartitionProgress(PLANNED, next_offset, Counts(), **more)


def test_at_first_all_is_ahead(state: RangeState) -> None:
    assert (state.handled, state.stored, state.is_working, state.is_settled, state.needs_store) == (
        10,
        10,
        True,
        False,
        False,
    )
    assert state.progress == progress(10)


def test_what_is_handled_is_news_until_it_is_stored(state: RangeState) -> None:
    state.advance(40)
    assert (state.handled, state.stored, state.needs_store) == (40, 10, True)
    assert state.progress.next_offset == 10
    state.mark_stored()
    assert (state.stored, state.needs_store, state.is_working) == (40, False, True)


def test_at_its_end_it_is_settled_once_that_is_stored(state: RangeState) -> None:
    state.advance(100)
    assert (state.is_working, state.is_settled) == (True, False)
    state.mark_stored()
    assert (state.is_working, state.is_settled, state.progress.complete) == (False, True, True)


def test_it_stops_at_a_fault_and_is_settled_once_that_is_stored(state: RangeState) -> None:
    state.advance(40)
    state.stop(PartitionHaltedError("offset 42: broken", 42))
    assert (state.ended, state.reason, state.handled) == ("stopped", "offset 42: broken", 42)
    assert (state.is_working, state.is_settled) == (False, False)
    state.mark_stored()
    assert (state.is_settled, state.progress.state) == (True, "stopped")


def test_a_stop_that_names_no_offset_leaves_what_is_handled(state: RangeState) -> None:
    state.advance(40)
    state.stop(PartitionHaltedError("no answer"))
    assert state.handled == 40


@pytest.mark.parametrize(
    ("stop", "stops_run"), [(PartitionHaltedError("why"), False), (PipelineHaltedError("why"), True)], ids=repr
)
def test_whether_the_run_is_to_stop_is_stored(state: RangeState, stop: PartitionHaltedError, stops_run: bool) -> None:
    state.stop(stop)
    assert (stored(state).reason, stored(state).ended, stored(state).stops_run) == ("why", "stopped", stops_run)


def test_an_end_without_an_offset_is_news_too(state: RangeState) -> None:
    state.give_up("the task was stopped")
    assert (state.needs_store, state.is_settled) == (True, False)
    state.mark_stored()
    assert (state.needs_store, state.is_settled) == (False, True)


def test_what_is_not_stored_is_forgotten(state: RangeState) -> None:
    state.resume(progress(20, seconds=1.5, done=((50, 60),)))
    state.advance(40)
    state.counts.read += 20
    state.lose(3)
    state.spend(2.0)
    state.stop(PipelineHaltedError("why", 40))
    state.resume(progress(20, seconds=1.5))
    assert (state.handled, state.stored, state.counts, state.work.seconds, state.work.done) == (
        20,
        20,
        Counts(),
        1.5,
        (),
    )
    assert (state.ended, state.reason, stored(state).stops_run, state.is_working) == (None, None, False, True)


def test_counts_of_a_chunk_do_not_reach_what_it_goes_on_from(state: RangeState) -> None:
    before = progress(20)
    state.resume(before)
    state.counts.read += 1
    state.lose(2)
    assert (before.counts, state.counts) == (Counts(), Counts(read=1, lost=2))


@pytest.mark.parametrize("ended", ["stopped", "yielded"])
def test_what_ended_in_an_earlier_attempt_is_tried_again(state: RangeState, ended: Ending) -> None:
    state.resume(progress(20, reason="why", ended=ended))
    assert (state.ended, state.reason, state.is_working) == (None, None, True)


def test_what_is_somebody_elses_is_over_and_nothing_of_it_is_stored(state: RangeState) -> None:
    state.resume(PartitionProgress.revoked(PLANNED, "newer"))
    state.advance(40)
    assert (state.is_revoked, state.is_working, state.needs_store, state.is_settled) == (True, False, False, True)
    assert state.reason == "run newer took the partition over"


def test_pieces_of_a_run_before_are_unsettled_until_they_are_taken_over(state: RangeState) -> None:
    inherited = Counts(read=3)
    state.resume(progress(20, done=((50, 60),), took_over="older", inherited=inherited), unsettled=Pieces(2, 4))
    assert stored(state).unsettled == Pieces(2, 4)
    state.take_over([(50, 60), (70, 80)], Counts(read=4))
    assert (stored(state).unsettled, stored(state).took_over, stored(state).inherited) == (
        None,
        "older",
        Counts(read=7),
    )
    assert state.skips == ((50, 60), (70, 80))


def test_a_record_is_news_once(state: RangeState) -> None:
    assert state.learn({15: FAULT})
    assert not state.learn({15: FAULT})
    assert not state.learn({})
    assert state.learn({15: FAULT, 17: FAULT})


def test_a_chunk_that_is_redone_ends_behind_the_last_record_known_to_fault(state: RangeState) -> None:
    assert (state.room(1_000), state.is_at_known_fault) == (1_000, False)
    state.learn({15: FAULT, 12: FAULT})
    assert (state.room(1_000), state.room(2)) == (6, 2)
    state.advance(15)
    assert (state.room(1_000), state.is_at_known_fault) == (1, False)
    state.advance(16)
    assert state.is_at_known_fault
    state.forget_faults()
    assert (state.room(1_000), state.is_at_known_fault) == (1_000, False)


def test_it_is_suspect_until_what_the_failed_chunk_had_read_is_behind(state: RangeState) -> None:
    state.advance(40)
    assert not state.is_suspect
    state.suspect()
    state.resume(progress(10))
    assert state.is_suspect
    # A shorter try that fails, too, does not end it sooner.
    state.advance(20)
    state.suspect()
    state.advance(39)
    assert state.is_suspect
    state.advance(40)
    assert not state.is_suspect


def test_what_has_ended_is_not_suspect(state: RangeState) -> None:
    state.advance(40)
    state.suspect()
    state.resume(PartitionProgress.revoked(PLANNED, "newer"))
    assert not state.is_suspect


def test_until_it_is_claimed_it_waits_also_where_nothing_is_left() -> None:
    waiting = RangeState(PLANNED)
    waiting.resume(progress(100))
    assert (waiting.phase, waiting.is_working, waiting.is_settled) == (Phase.WAITING, False, True)
    waiting.claim()
    assert waiting.phase is Phase.COMPLETE


def test_an_end_that_is_found_before_it_is_claimed_does_not_claim_it() -> None:
    waiting = RangeState(PLANNED)
    waiting.stop_short("no room")
    assert (waiting.is_claimed, waiting.ended, waiting.needs_store) == (False, "stopped", True)
    waiting.resume(progress(20))
    assert waiting.phase is Phase.WAITING


def test_what_is_left_to_others_may_be_found_to_be_ours_by_a_further_look() -> None:
    waiting = RangeState(PLANNED)
    waiting.leave("it cannot be read")
    assert (waiting.is_ours, waiting.is_settled, waiting.ended) == (False, True, "stopped")
    waiting.resume(progress(20))
    assert (waiting.is_ours, waiting.phase) == (True, Phase.WAITING)


DRAWN = re.compile(r"^    (?:([A-Z]+) )? *[─┬├└]+► ([A-Z]+)  ", re.MULTILINE)
WAYS_TO: Mapping[Phase, Callable[[RangeState], None]] = {
    Phase.WAITING: lambda state: state.resume(progress(20)),
    Phase.RUNNING: lambda state: state.resume(progress(20)),
    Phase.COMPLETE: lambda state: state.resume(progress(100)),
    Phase.STOPPED: lambda state: state.stop_short("why"),
    Phase.YIELDED: lambda state: state.give_up("why"),
    Phase.REVOKED: lambda state: state.resume(PartitionProgress.revoked(PLANNED, "newer")),
    Phase.LEFT: lambda state: state.leave("why"),
}
"""What takes a range to a phase: to wait, it has to be unclaimed, and to run or to be complete, claimed."""


def drawn() -> set[tuple[Phase, Phase]]:
    """The arrows of the drawing in the module."""
    arrows, begin = set(), Phase.WAITING
    for named, end in DRAWN.findall(module.__doc__ or ""):
        begin = Phase[named] if named else begin
        arrows.add((begin, Phase[end]))
    return arrows


def made(phase: Phase, *, is_claimed: bool) -> RangeState:
    state = RangeState(PLANNED)
    state.phase, state.is_claimed = phase, is_claimed
    return state


def test_the_picture_has_the_ways_of_the_table_and_each_has_one_line() -> None:
    text = module.__doc__ or ""
    assert drawn() == {(begin, end) for begin, ends in module._NEXT.items() for end in ends}
    assert text.count("►") == len(drawn()) == 22


@pytest.mark.parametrize(("begin", "end"), list(product(Phase, Phase)), ids=lambda phase: phase.value)
def test_a_range_goes_the_ways_of_the_picture_and_no_other(begin: Phase, end: Phase) -> None:
    state = made(begin, is_claimed=end is not Phase.WAITING)
    if begin is end or (begin, end) in drawn():
        WAYS_TO[end](state)
        assert state.phase is end
    else:
        with pytest.raises(AssertionError, match=f"is {begin.value}, and cannot become {end.value}"):
            WAYS_TO[end](state)


@pytest.mark.parametrize(("next_offset", "phase"), [(20, Phase.RUNNING), (100, Phase.COMPLETE)])
def test_a_claim_begins_a_range_or_completes_it(next_offset: int, phase: Phase) -> None:
    waiting = RangeState(PLANNED)
    waiting.resume(progress(next_offset))
    waiting.claim()
    assert waiting.phase is phase
