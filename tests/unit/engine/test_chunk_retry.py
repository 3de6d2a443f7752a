from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress
from kpipe_engine.assignment.assignment import Assignment
from kpipe_engine.assignment.careful_start import CarefulStart
from kpipe_engine.assignment.precautions import Precautions, Suspicion
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.assignment.suspects import Suspects
from kpipe_engine.assignment.worker_position import WorkerPosition
from kpipe_engine.chunk_retry import CHUNK_TRIES, LEASE_SECONDS, ChunkRetry
from kpipe_engine.errors import ChunkFailedError, PartitionHaltedError

FAULT = Fault.of(ValueError("x"), "kafka", "destination")
DOWN, FENCED = (KafkaException(KafkaError(code)) for code in (KafkaError._TRANSPORT, KafkaError._FENCED))
SIZE = 5


class Written(NamedTuple):
    partition: int
    offset: int
    is_traced: bool = False


class Kafka:
    """Reader, writer, claims, events and stop signal in one, as far as they leave something behind."""

    def __init__(self) -> None:
        self.written: list[Written] = []
        self.emitted: list[tuple[str, int]] = []
        self.clock = 0.0
        self.is_ours = True
        """Whether the partition's writer is us: whoever opens one fences the other."""
        self.taken_on_at: float | None = None
        """When a newer run puts its lease down."""
        self._fetched: dict[int, int] = {}
        self.isolates = False

    def read(self, state: RangeState) -> list[Written]:
        """A consumer goes on behind what it has fetched: only a new one begins where the lane stands."""
        first = self._fetched.get(state.partition, state.handled)
        self._fetched[state.partition] = first + SIZE
        return [Written(state.partition, at, self.isolates) for at in range(first, first + SIZE)]

    def forget(self) -> None:
        """What is read next would be said anew."""

    def renew(self, *, isolates: bool | None = None) -> None:
        if isolates is None:
            self._fetched.clear()
        else:
            self.isolates, self.is_ours = isolates, True

    def read_stored(self, assignment: Sequence[RangeState]) -> list[Any]:
        is_taken = self.taken_on_at is not None and self.clock >= self.taken_on_at
        for state in assignment:
            if is_taken:
                state.resume(PartitionProgress.revoked(state.range, "newer"))
            else:
                state.resume(PartitionProgress(state.range, state.stored, Counts()))
        return []

    def emit(self, event: str, state: RangeState, **_details: Any) -> None:
        self.emitted.append((event, state.partition))

    def begin(self) -> None:
        """An empty chunk is as good as none."""

    def wait(self, seconds: float) -> None:
        self.clock += seconds


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()


@pytest.fixture
def assignment(kafka: Any) -> Assignment:
    made = Assignment([RangeState(PartitionRange(each, 0, 2 * SIZE, None)) for each in range(2)], kafka)
    made.claim()
    kafka.emitted.clear()
    return made


@pytest.fixture
def careful_start() -> CarefulStart:
    return CarefulStart(Precautions(), 1_000)


@pytest.fixture
def retry(assignment: Assignment, careful_start: CarefulStart, kafka: Any) -> ChunkRetry:
    suspects = Suspects("orders", 60.0, WorkerPosition(), careful_start)
    return ChunkRetry(assignment, kafka, kafka, kafka, kafka, suspects)


def step(assignment: Assignment, kafka: Kafka, *outcomes: Exception | None) -> Callable[[], None]:
    """Handles five records of the current lane, and then fails or stores, in turn."""
    left = list(outcomes)

    def run() -> None:
        records = kafka.read(assignment.current)
        assignment.current.advance(records[-1].offset + 1)
        if outcome := left.pop(0):
            kafka.is_ours = kafka.is_ours and outcome is not FENCED
            raise outcome
        kafka.written.extend(records)
        assignment.current.mark_stored()

    return run


def until_it_works(retry: ChunkRetry, assignment: Assignment, step: Callable[[], None]) -> None:
    """Try a step again, as the worker's loop does."""
    is_done = False
    while assignment.unsettled and not is_done:
        with retry.attempt():
            step()
            is_done = True


def chunk(partition: int = 0, *, is_traced: bool = False) -> list[Written]:
    return [Written(partition, at, is_traced) for at in range(SIZE)]


def test_a_successful_step_is_done_once(retry: ChunkRetry, assignment: Assignment, kafka: Kafka) -> None:
    until_it_works(retry, assignment, step(assignment, kafka, None))
    assert (kafka.written, kafka.isolates) == (chunk(), False)
    assert list(retry.next_ranges) == list(assignment)


@pytest.mark.parametrize("failure", [ChunkFailedError("refused"), DOWN], ids=["refused", "down"])
def test_a_failed_step_is_redone_carefully_and_then_trusted(
    retry: ChunkRetry, assignment: Assignment, kafka: Kafka, failure: Exception
) -> None:
    until_it_works(retry, assignment, step(assignment, kafka, failure, None))
    assert (kafka.written, kafka.isolates) == (chunk(is_traced=True), False)
    assert list(retry.next_ranges) == list(assignment)
    # A fault is nobody else's.
    assert (kafka.clock, kafka.emitted) == (0, [])


def test_it_stays_careful_one_lane_at_a_time_until_all_that_failed_is_behind(
    retry: ChunkRetry, assignment: Assignment, kafka: Kafka
) -> None:
    # Of both, the chunk that fails has some.
    assignment[1].advance(SIZE)
    until_it_works(retry, assignment, step(assignment, kafka, ChunkFailedError("refused"), None))
    assert (kafka.isolates, list(retry.next_ranges)) == (True, [assignment[1]])
    assignment.turn_to(assignment[1])
    until_it_works(retry, assignment, step(assignment, kafka, None))
    assert (kafka.isolates, list(retry.next_ranges)) == (False, list(assignment))
    assert kafka.written == [*chunk(0, is_traced=True), *chunk(1, is_traced=True)]


@pytest.mark.parametrize("failure", [ChunkFailedError("refused"), DOWN], ids=["refused", "down"])
def test_it_is_not_tried_for_ever(retry: ChunkRetry, assignment: Assignment, kafka: Kafka, failure: Exception) -> None:
    with pytest.raises(
        PartitionHaltedError, match=r"the chunk from offset 0 failed 5 times, the last time with: "
    ) as stop:
        until_it_works(retry, assignment, step(assignment, kafka, *[failure] * CHUNK_TRIES))
    assert stop.value.__cause__ is failure


def test_a_try_that_finds_another_record_at_fault_is_none_in_vain(
    retry: ChunkRetry, assignment: Assignment, kafka: Kafka
) -> None:
    found = [ChunkFailedError("refused", {at: FAULT}) for at in range(CHUNK_TRIES + 1)]
    until_it_works(retry, assignment, step(assignment, kafka, *found, None))
    assert kafka.written == chunk(is_traced=True)


def test_the_same_record_again_is_news_no_longer(retry: ChunkRetry, assignment: Assignment, kafka: Kafka) -> None:
    with pytest.raises(PartitionHaltedError):
        until_it_works(
            retry, assignment, step(assignment, kafka, *[ChunkFailedError("refused", {3: FAULT})] * CHUNK_TRIES)
        )


def test_a_worker_that_fenced_us_gets_time_to_store_its_lease(
    retry: ChunkRetry, assignment: Assignment, kafka: Kafka
) -> None:
    kafka.taken_on_at = LEASE_SECONDS
    until_it_works(retry, assignment, step(assignment, kafka, FENCED))
    assert kafka.emitted == [("revoked", 0), ("revoked", 1)]
    # It is theirs: nobody is fenced in turn.
    assert (kafka.is_ours, kafka.written) == (False, [])


def test_somebody_who_fenced_us_and_has_no_later_lease_is_fenced(
    retry: ChunkRetry, assignment: Assignment, kafka: Kafka
) -> None:
    until_it_works(retry, assignment, step(assignment, kafka, FENCED, None))
    assert (kafka.is_ours, kafka.written) == (True, chunk(is_traced=True))


def test_of_what_is_somebody_elses_by_now_nothing_is_tried_again(
    retry: ChunkRetry, assignment: Assignment, kafka: Kafka
) -> None:
    kafka.taken_on_at = 0
    until_it_works(retry, assignment, step(assignment, kafka, ChunkFailedError("refused")))
    assert (assignment.unsettled, kafka.written) == ([], [])


def test_a_newer_run_that_came_before_the_trusting_producer_is_noticed(
    retry: ChunkRetry, assignment: Assignment, kafka: Kafka
) -> None:
    work = step(assignment, kafka, ChunkFailedError("refused"), None)

    def work_until_a_newer_run_comes() -> None:
        work()
        kafka.taken_on_at = kafka.clock

    until_it_works(retry, assignment, work_until_a_newer_run_comes)
    assert kafka.emitted == [("revoked", 0), ("revoked", 1)]
    assert list(retry.next_ranges) == []


def test_a_chunk_that_is_given_up_is_no_reason_to_be_careful(
    retry: ChunkRetry, assignment: Assignment, kafka: Kafka
) -> None:
    assignment.current.advance(SIZE)
    retry.discard_chunk()
    assert (kafka.isolates, assignment.current.handled) == (False, 0)
    assert list(retry.next_ranges) == list(assignment)


def test_ranges_with_suspected_records_come_first(
    retry: ChunkRetry, assignment: Assignment, careful_start: CarefulStart
) -> None:
    careful_start.suspect(Suspicion(1, None, 3, 1))
    assert list(retry.next_ranges) == [assignment[1]]
    assignment[1].advance(3)
    assert list(retry.next_ranges) == list(assignment)


def test_a_worker_that_nobody_waits_for_tries_nothing_again(
    retry: ChunkRetry, assignment: Assignment, kafka: Kafka
) -> None:
    def abandoned_meanwhile() -> None:
        retry.stop_trying()
        raise ChunkFailedError("the broker did not answer")

    with pytest.raises(PartitionHaltedError, match="the chunk from offset 0 failed 1 times"):
        until_it_works(retry, assignment, abandoned_meanwhile)
    # Nobody is fenced by a worker that is not waited for.
    assert not kafka.isolates
