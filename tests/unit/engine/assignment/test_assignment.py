from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress
from kpipe_engine.assignment.assignment import Assignment
from kpipe_engine.assignment.events import Event, PartitionEvents
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.errors import PartitionHaltedError, PipelineHaltedError

FAULT = Fault.of(ValueError("x"), "kafka", "destination")


class Emitted(PartitionEvents):
    """Keeps the events, each with its partition."""

    def __init__(self) -> None:
        self.all: list[tuple[str, int]] = []

    def emit(self, event: Event, state: RangeState, **details: Any) -> None:
        self.all.append((event, state.partition))


@pytest.fixture
def events() -> Emitted:
    return Emitted()


@pytest.fixture
def assignment(events: Emitted) -> Assignment:
    return Assignment([RangeState(PartitionRange(each, 0, 10, None)) for each in range(3)], events)


def test_the_first_is_current_at_first(assignment: Assignment) -> None:
    assert assignment.current is assignment[0]


def test_which_have_something_to_do_and_which_to_store(assignment: Assignment) -> None:
    first, second, third = assignment
    assert assignment.working == assignment.unsettled == assignment.not_revoked == [first, second, third]
    assignment.claim()
    first.advance(10)
    first.mark_stored()
    second.give_up("the task was stopped")
    third.resume(PartitionProgress.revoked(third.range, "newer"))
    assert (assignment.working, assignment.unsettled, assignment.not_revoked) == ([], [second], [first, second])


def test_a_fault_stops_the_current_one(assignment: Assignment) -> None:
    assignment.turn_to(assignment[1])
    assignment.stop(PartitionHaltedError("offset 5: broken", 5))
    assert [each.ended for each in assignment] == [None, "stopped", None]
    assert assignment[1].handled == 5


def test_a_fault_that_stops_the_pipeline_stops_all_that_are_at_work(assignment: Assignment) -> None:
    assignment.claim()
    assignment[2].give_up("before")
    assignment.stop(PipelineHaltedError("offset 5: broken", 5))
    assert [each.reason for each in assignment] == [
        "offset 5: broken",
        "partition 0 stopped the pipeline: offset 5: broken",
        "before",
    ]
    assert [each.handled for each in assignment] == [5, 0, 0]


def test_ranges_are_claimed_once_our_lease_is_stored(assignment: Assignment, events: Emitted) -> None:
    first, second, third = assignment
    assert assignment.unclaimed == [first, second, third]
    second.resume(PartitionProgress(second.range, 10, Counts()))
    third.resume(PartitionProgress.revoked(third.range, "newer"))
    assignment.claim()
    assert (assignment.unclaimed, assignment.unsettled) == ([], [first])
    assert events.all == [("assigned", 0), ("completed", 1)]


def test_the_partitions_that_have_to_stop_do(assignment: Assignment, events: Emitted) -> None:
    assignment.stop_some({1: "workers died over it", 7: "not ours"})
    assert [each.reason for each in assignment] == [None, "workers died over it", None]
    assert events.all == [("faulted", 1)]
    # It is said once.
    assignment.stop_some({1: "workers died over it"})
    assert events.all == [("faulted", 1)]


@pytest.mark.parametrize(("drains", "emitted"), [(True, [("draining", 0)]), (False, [])])
def test_an_unfinished_range_yields(events: Emitted, drains: bool, emitted: list[tuple[str, int]]) -> None:
    assignment = Assignment([RangeState(PartitionRange(each, 0, 10, None)) for each in range(2)], events, drains=drains)
    assignment.claim()
    events.all.clear()
    assignment[1].advance(10)
    assignment.yield_all("the task was stopped")
    assert [each.ended for each in assignment] == ["yielded", None]
    assert events.all == emitted


def test_a_stored_range_is_emitted_with_its_end(assignment: Assignment, events: Emitted) -> None:
    assignment.claim()
    events.all.clear()
    first, second, third = assignment
    first.advance(5)
    second.advance(10)
    third.give_up("the task was stopped")
    assert assignment.needing_store == [first, second, third]
    assignment.mark_stored(assignment.needing_store)
    assert events.all == [
        ("chunk_stored", 0),
        ("chunk_stored", 1),
        ("completed", 1),
        ("chunk_stored", 2),
        ("drained", 2),
        ("yielded", 2),
    ]
    assert assignment.needing_store == []


def test_lost_ranges_are_emitted_after_a_look(assignment: Assignment, events: Emitted) -> None:
    assignment[0].leave("it cannot be read")
    assignment[1].resume(PartitionProgress.revoked(assignment[1].range, "newer"))
    assignment.emit_lost(assignment)
    assert events.all == [("faulted", 0), ("revoked", 1)]


def test_culprits_that_lie_ahead_are_known_faults(assignment: Assignment) -> None:
    assignment[1].advance(5)
    assignment.learn({1: {3: FAULT, 7: FAULT}})
    assert [list(each.known_faults) for each in assignment] == [[], [7], []]


def test_faults_of_the_current_range_are_learned_and_forgotten(assignment: Assignment) -> None:
    assignment.turn_to(assignment[1])
    assert [assignment.learn_of_current({3: FAULT}), assignment.learn_of_current({3: FAULT})] == [True, False]
    assignment[1].advance(4)
    assignment.forget_faults_of_current()
    assert [each.known_faults for each in assignment] == [{}, {}, {}]


def test_records_of_a_failed_chunk_are_suspected_until_they_are_handled(assignment: Assignment) -> None:
    assignment[1].advance(5)
    assignment.suspect()
    assert not assignment.has_suspects
    assignment[1].resume(PartitionProgress.not_started(assignment[1].range))
    assert assignment.has_suspects
