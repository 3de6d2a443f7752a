from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.contract.faults import Fault
from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.progress import Counts, PartitionProgress
from kpipe_engine.acknowledgements import Acknowledgements
from kpipe_engine.errors import ChunkFailedError, PartitionStoppedError
from kpipe_engine.handling import Handler
from kpipe_engine.lane import Lane
from kpipe_engine.lanes import Lanes
from kpipe_engine.recovery import CHUNK_TRIES, LEASE_SECONDS, Recovery

FAULT = Fault.of(ValueError("x"), "kafka", "destination")
DOWN, FENCED = (KafkaException(KafkaError(code)) for code in (KafkaError._TRANSPORT, KafkaError._FENCED))
CAREFULLY = ["new consumer", "TracedAcknowledgements", "look"]


class Surroundings:
    """Source, delivery, ownership, events and orders in one: notes what is asked of it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.revoked: set[int] = set()

    def forget(self) -> None:
        """What is read next would be said anew."""

    def renew(self, kind: type[Acknowledgements] | None = None) -> None:
        self.calls.append(kind.__name__ if kind else "new consumer")

    def look(self, lanes: Sequence[Lane]) -> list[Any]:
        self.calls.append("look")
        for lane in lanes:
            if lane.partition in self.revoked:
                lane.go_on(PartitionProgress.revoked(lane.range, "newer"))
            else:
                lane.go_on(PartitionProgress(lane.range, lane.stored, Counts()))
        return []

    def tell(self, event: str, lane: Lane, **_details: Any) -> None:
        self.calls.append(f"{event} {lane.partition}")

    def wait(self, seconds: float) -> None:
        self.calls.append(f"wait {seconds}")


@pytest.fixture
def around() -> Surroundings:
    return Surroundings()


@pytest.fixture
def lanes() -> Lanes:
    return Lanes([Lane(PartitionRange(each, 0, 10, None), cast("Handler", None)) for each in range(2)])


@pytest.fixture
def recovery(lanes: Lanes, around: Any) -> Recovery:
    return Recovery(lanes, around, around, around, around, around)


def step(lanes: Lanes, *outcomes: Exception | None) -> Callable[[], None]:
    """Handles five records of the current lane, and then fails or stores, in turn."""
    left = list(outcomes)

    def run() -> None:
        lanes.current.advance(5)
        if outcome := left.pop(0):
            raise outcome
        lanes.current.note_stored()

    return run


def test_what_works_is_done_once(recovery: Recovery, lanes: Lanes, around: Surroundings) -> None:
    recovery.until_it_works(step(lanes, None), lambda: lanes.unsettled)
    assert around.calls == []
    assert recovery.next_lanes == list(lanes)


@pytest.mark.parametrize("failure", [ChunkFailedError("refused"), DOWN], ids=["refused", "down"])
def test_what_fails_is_done_again_carefully_and_then_trusted(
    recovery: Recovery, lanes: Lanes, around: Surroundings, failure: Exception
) -> None:
    recovery.until_it_works(step(lanes, failure, None), lambda: lanes.unsettled)
    assert around.calls == [*CAREFULLY, "Acknowledgements", "look"]
    assert recovery.next_lanes == list(lanes)


def test_it_stays_careful_one_lane_at_a_time_until_all_that_failed_is_behind(
    recovery: Recovery, lanes: Lanes, around: Surroundings
) -> None:
    lanes[1].advance(5)
    recovery.until_it_works(step(lanes, ChunkFailedError("refused"), None), lambda: lanes.unsettled)
    assert around.calls == CAREFULLY
    assert recovery.next_lanes == [lanes[1]]
    lanes.current = lanes[1]
    recovery.until_it_works(step(lanes, None), lambda: lanes.unsettled)
    assert around.calls == [*CAREFULLY, "Acknowledgements", "look"]


@pytest.mark.parametrize("failure", [ChunkFailedError("refused"), DOWN], ids=["refused", "down"])
def test_it_is_not_tried_for_ever(recovery: Recovery, lanes: Lanes, failure: Exception) -> None:
    with pytest.raises(PartitionStoppedError, match=r"the chunk from offset 0 failed 5 times, the last time with: "):
        recovery.until_it_works(step(lanes, *[failure] * CHUNK_TRIES), lambda: lanes.unsettled)


def test_a_try_that_finds_another_record_at_fault_is_none_in_vain(recovery: Recovery, lanes: Lanes) -> None:
    found = [ChunkFailedError("refused", {at: FAULT}) for at in range(CHUNK_TRIES + 1)]
    recovery.until_it_works(step(lanes, *found, None), lambda: lanes.unsettled)
    assert lanes.current.stored == 5


def test_the_same_record_again_is_news_no_longer(recovery: Recovery, lanes: Lanes) -> None:
    with pytest.raises(PartitionStoppedError):
        recovery.until_it_works(
            step(lanes, *[ChunkFailedError("refused", {3: FAULT})] * CHUNK_TRIES), lambda: lanes.unsettled
        )


def test_whoever_fenced_us_gets_the_time_to_put_its_lease_down(
    recovery: Recovery, lanes: Lanes, around: Surroundings
) -> None:
    around.revoked = {0, 1}
    recovery.until_it_works(step(lanes, FENCED), lambda: lanes.unsettled)
    # It is theirs: nobody is fenced in turn.
    assert around.calls == ["new consumer", f"wait {LEASE_SECONDS}", "look", "revoked 0", "revoked 1"]


def test_somebody_who_fenced_us_and_has_no_later_lease_is_fenced(
    recovery: Recovery, lanes: Lanes, around: Surroundings
) -> None:
    recovery.until_it_works(step(lanes, FENCED, None), lambda: lanes.unsettled)
    assert around.calls[:5] == ["new consumer", f"wait {LEASE_SECONDS}", "look", "TracedAcknowledgements", "look"]


def test_of_what_is_somebody_elses_by_now_nothing_is_tried_again(recovery: Recovery, lanes: Lanes, around: Any) -> None:
    around.revoked = {0, 1}
    recovery.until_it_works(step(lanes, ChunkFailedError("refused")), lambda: lanes.unsettled)
    assert lanes.unsettled == []


def test_a_chunk_that_is_given_up_is_no_reason_to_be_careful(
    recovery: Recovery, lanes: Lanes, around: Surroundings
) -> None:
    lanes.current.advance(5)
    recovery.forget_chunk()
    assert (around.calls, lanes.current.handled) == (["Acknowledgements", "look"], 0)
    assert recovery.next_lanes == list(lanes)
