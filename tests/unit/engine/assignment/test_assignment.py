from __future__ import annotations

import pytest

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from kpipe_engine.assignment.assignment import Assignment
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.errors import PartitionHaltedError, PipelineHaltedError


@pytest.fixture
def assignment() -> Assignment:
    return Assignment([RangeState(PartitionRange(each, 0, 10, None)) for each in range(3)])


def test_the_first_is_current_at_first(assignment: Assignment) -> None:
    assert assignment.current is assignment[0]


def test_which_have_something_to_do_and_which_to_store(assignment: Assignment) -> None:
    first, second, third = assignment
    assert assignment.working == assignment.unsettled == assignment.not_revoked == [first, second, third]
    first.advance(10)
    first.note_stored()
    second.end("yielded", "the task was stopped")
    third.go_on(PartitionProgress.revoked(third.range, "newer"))
    assert (assignment.working, assignment.unsettled, assignment.not_revoked) == ([], [second], [first, second])


def test_a_fault_stops_the_current_one(assignment: Assignment) -> None:
    assignment.current = assignment[1]
    assignment.stop(PartitionHaltedError("offset 5: broken", 5))
    assert [each.ended for each in assignment] == [None, "stopped", None]
    assert assignment[1].handled == 5


def test_a_fault_that_stops_the_pipeline_stops_all_that_are_at_work(assignment: Assignment) -> None:
    assignment[2].end("yielded", "before")
    assignment.stop(PipelineHaltedError("offset 5: broken", 5))
    assert [each.reason for each in assignment] == [
        "offset 5: broken",
        "partition 0 stopped the pipeline: offset 5: broken",
        "before",
    ]
    assert [each.handled for each in assignment] == [5, 0, 0]
