from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pytest

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.assignment import suspects as module
from kpipe_engine.assignment.careful_start import CarefulStart
from kpipe_engine.assignment.precautions import Precautions
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.assignment.suspects import Suspects
from kpipe_engine.assignment.worker_position import At, Reading, WorkerPosition
from kpipe_engine.errors import ChunkFailedError

LONGEST, MOST = 10.0, 1_000
FAILURE = ChunkFailedError("the transaction was aborted")
Handle = Callable[[Sequence[int], float], None]


@pytest.fixture
def position() -> WorkerPosition:
    return WorkerPosition()


@pytest.fixture
def suspects(position: WorkerPosition) -> Suspects:
    return Suspects("orders", LONGEST, position, CarefulStart(Precautions(), MOST))


@pytest.fixture
def states() -> list[RangeState]:
    return [RangeState(PartitionRange(3, 0, 5_000, None))]


@pytest.fixture
def handle(suspects: Suspects, message: Callable[[int], SourceMessage], monkeypatch: pytest.MonkeyPatch) -> Handle:
    """Handles these offsets in one call, for so many seconds."""
    clock = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    handled = [0]

    def run(offsets: Sequence[int], seconds: float) -> None:
        with suspects.handling(3, [message(each) for each in offsets], handled[0]):
            clock[0] += seconds
        handled[0] += len(offsets)

    return run


def test_the_records_in_hand_are_known_while_they_are_handled_and_until_the_chunk_is_stored(
    suspects: Suspects, position: WorkerPosition, states: list[RangeState], handle: Handle
) -> None:
    suspects.begin(states)
    suspects.reads(3, 10, 50)
    assert (position.reading, position.at) == (Reading(3, 10, 50), None)
    handle([10, 12], 0.1)
    handle([13], 0.1)
    assert position.at == At(3, 13, 14, 1, 3)
    suspects.end()
    assert position.at is None


def test_a_chunk_that_fails_soon_makes_nothing_suspect(
    suspects: Suspects, states: list[RangeState], handle: Handle
) -> None:
    suspects.begin(states)
    handle([10, 11], LONGEST / 2)
    assert suspects.explain(FAILURE) is FAILURE
    assert (suspects.ranges(states), suspects.begin(states)) == ((), MOST)


def test_after_one_that_fails_late_each_record_of_its_slowest_call_is_alone(
    suspects: Suspects, states: list[RangeState], handle: Handle
) -> None:
    suspects.begin(states)
    handle([10, 11], 0.1)
    handle([12, 14], LONGEST)
    handle([15], 0.1)
    assert suspects.explain(FAILURE) is FAILURE
    assert suspects.ranges(states) == states
    # The chunk before them ends in front of them.
    assert suspects.begin(states) == 12
    states[0].advance(12)
    assert suspects.begin(states) == 1
    states[0].advance(15)
    assert suspects.ranges(states) == []


def test_a_record_that_was_alone_and_took_longer_than_its_transaction_is_at_fault(
    suspects: Suspects, position: WorkerPosition, states: list[RangeState], handle: Handle
) -> None:
    suspects.begin(states)
    handle([12], LONGEST + 1)
    found = suspects.explain(FAILURE)
    assert isinstance(found, ChunkFailedError)
    assert (list(found.faults), found.__cause__) == ([12], FAILURE)
    assert found.faults[12].kind == "segment"
    assert position.at is None


def test_a_slow_record_of_one_chunk_is_not_suspect_in_the_next(
    suspects: Suspects, states: list[RangeState], handle: Handle
) -> None:
    suspects.begin(states)
    handle([10, 11], LONGEST)
    suspects.end()
    suspects.begin(states)
    assert suspects.explain(FAILURE) is FAILURE
    assert suspects.ranges(states) == ()


def test_a_read_without_records_is_timed_under_none(
    suspects: Suspects, position: WorkerPosition, states: list[RangeState], handle: Handle
) -> None:
    suspects.begin(states)
    handle([], LONGEST)
    assert position.at is None
    assert suspects.explain(FAILURE) is FAILURE
    assert suspects.ranges(states) == ()
