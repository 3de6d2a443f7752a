from __future__ import annotations

import pytest

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from kpipe_engine.assignment.assignment import Lanes
from kpipe_engine.assignment.range_state import Lane
from kpipe_engine.errors import PartitionStoppedError, PipelineStoppedError


@pytest.fixture
def lanes() -> Lanes:
    return Lanes([Lane(PartitionRange(each, 0, 10, None)) for each in range(3)])


def test_the_first_is_current_at_first(lanes: Lanes) -> None:
    assert lanes.current is lanes[0]


def test_which_have_something_to_do_and_which_to_store(lanes: Lanes) -> None:
    first, second, third = lanes
    assert lanes.working == lanes.unsettled == lanes.not_revoked == [first, second, third]
    first.advance(10)
    first.note_stored()
    second.end("yielded", "the task was stopped")
    third.go_on(PartitionProgress.revoked(third.range, "newer"))
    assert (lanes.working, lanes.unsettled, lanes.not_revoked) == ([], [second], [first, second])


def test_a_fault_stops_the_current_one(lanes: Lanes) -> None:
    lanes.current = lanes[1]
    lanes.stop(PartitionStoppedError("offset 5: broken", 5))
    assert [each.ended for each in lanes] == [None, "stopped", None]
    assert lanes[1].handled == 5


def test_a_fault_that_stops_the_pipeline_stops_all_that_are_at_work(lanes: Lanes) -> None:
    lanes[2].end("yielded", "before")
    lanes.stop(PipelineStoppedError("offset 5: broken", 5))
    assert [each.reason for each in lanes] == [
        "offset 5: broken",
        "partition 0 stopped the pipeline: offset 5: broken",
        "before",
    ]
    assert [each.handled for each in lanes] == [5, 0, 0]
