from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from kpipe_engine.assignment.precautions import Precautions, Suspicion
from kpipe_engine.assignment.worker_position import At, Reading
from kpipe_engine.supervision.crash_cases import MOST_DEATHS, Case, Death

BLOCK = (PartitionRange(1, 0, 5_000, None), PartitionRange(2, 0, 5_000, None))
DEATH = Death("crash", "was killed by SIGSEGV")


@pytest.fixture
def case() -> Case:
    return Case(BLOCK, "orders:parse", 512)


def at(first: int, after: int, in_chunk: int | None = None, partition: int = 1) -> At:
    return At(partition, first, after, after - first, after - first if in_chunk is None else in_chunk)


def test_at_first_there_is_nothing_to_heed(case: Case) -> None:
    assert case.precautions == Precautions()


def test_the_first_death_has_what_was_read_last_redone_in_smaller_chunks(case: Case) -> None:
    said = case.note_death(DEATH, at(3_000, 4_000, in_chunk=4_000), was_at_ease=True)
    assert case.precautions == Precautions(True, Suspicion(1, 3_000, 4_000, 31))
    assert said == (
        "partition 1: its worker was killed by SIGSEGV at offsets 3000 to 3999; they are redone, 31 in a chunk"
    )


def test_a_record_that_dies_in_a_chunk_of_its_own_is_found(case: Case) -> None:
    case.note_death(DEATH, at(3_000, 4_000), was_at_ease=True)
    case.note_death(DEATH, at(3_031, 3_062), was_at_ease=False)
    assert case.precautions == Precautions(True, Suspicion(1, None, 3_062, 1))
    case.note_death(DEATH, at(3_040, 3_041), was_at_ease=False)
    assert case.precautions == Precautions(True, Suspicion(1, None, 3_041, 1))
    case.note_death(Death("crash", "ended with exit code 3", "told by itself"), at(3_040, 3_041), was_at_ease=False)
    fault = case.precautions.culprits[1][3_040]
    assert case.precautions == Precautions(True, Suspicion(1, None, 3_041, 1), {1: {3_040: fault}})
    assert (fault.kind, fault.component, fault.attempts) == ("crash", "orders:parse", 4)
    assert (fault.message, fault.stacktrace) == (
        "over this record the worker ended with exit code 3",
        "told by itself",
    )
    assert fault.exception_class == "kpipe_engine.errors.WorkerDiedError"


def test_deaths_over_one_record_after_another_condemn_none_of_them(case: Case) -> None:
    """Memory that leaks, or that a container lacks, ends some workers over a chunk of one record, too."""
    case.note_death(DEATH, at(0, 1_000), was_at_ease=True)
    case.note_death(DEATH, at(0, 31), was_at_ease=False)
    for offset in (4, 9, 13, 14):
        case.note_death(DEATH, at(offset, offset + 1), was_at_ease=False)
        assert (case.precautions.culprits, case.precautions.stops) == ({}, {})


def test_a_limit_that_is_exceeded_over_a_record_by_itself_has_no_other_cause(case: Case) -> None:
    case.note_death(Death("timeout", "was ended"), at(0, 10), was_at_ease=True)
    case.note_death(Death("timeout", "was ended"), at(4, 5), was_at_ease=False)
    assert list(case.precautions.culprits[1]) == [4]


def test_a_hang_beside_records_is_not_tried_again(case: Case) -> None:
    said = case.note_hang(Death("timeout", "was ended, as open() of segment 'a:b' had not come to its end within 60 s"))
    reason = (
        "the worker was ended, as open() of segment 'a:b' had not come to its end within 60 s; fix it or what it "
        "needs, then run again"
    )
    assert case.precautions == Precautions(stops={1: reason, 2: reason})
    assert case.is_given_up
    assert said == f"partitions 1, 2: {reason}"


def test_a_case_that_is_done_gives_nothing_up(case: Case) -> None:
    case.note_hang(DEATH)
    case.is_done = True
    assert not case.is_given_up


def test_one_death_by_itself_condemns_nobody(case: Case) -> None:
    """Somebody may have killed the worker."""
    case.note_death(DEATH, at(7, 8), was_at_ease=True)
    assert case.precautions == Precautions(True, Suspicion(1, 7, 8, 1))
    case.note_death(DEATH, at(7, 8), was_at_ease=False)
    assert list(case.precautions.culprits[1]) == [7]


def test_a_death_in_front_of_what_was_suspected_has_everything_suspected_that_is_not_stored(case: Case) -> None:
    case.note_death(DEATH, at(3_000, 4_000, in_chunk=4_000), was_at_ease=True)
    case.note_death(DEATH, at(1_000, 2_000, in_chunk=2_000), was_at_ease=False)
    assert case.precautions.suspicion == Suspicion(1, None, 2_000, 62)


def test_a_death_behind_what_was_suspected_or_in_another_partition_is_another_matter(case: Case) -> None:
    case.note_death(DEATH, at(0, 1_000), was_at_ease=True)
    case.note_death(DEATH, at(1_000, 1_064), was_at_ease=False)
    assert case.precautions.suspicion == Suspicion(1, 1_000, 1_064, 2)
    case.note_death(DEATH, at(0, 10, partition=2), was_at_ease=False)
    assert case.precautions.suspicion == Suspicion(2, 0, 10, 1)


def test_a_record_that_dies_of_its_fault_too_stops_its_partition(case: Case) -> None:
    for _ in range(3):
        case.note_death(DEATH, at(7, 8), was_at_ease=False)
    assert case.precautions.suspicion is None
    assert "offset 7: crash orders:parse" in case.precautions.stops[1]
    assert not case.is_given_up


def test_deaths_that_no_record_is_the_cause_of_come_to_an_end(case: Case) -> None:
    for number in range(MOST_DEATHS):
        assert case.precautions.stops == {}
        case.note_death(DEATH, at(100 * number, 100 * number + 50), was_at_ease=False)
    assert list(case.precautions.stops) == [1]
    assert (
        "the worker died 10 times, the last time it was killed by SIGSEGV at offsets 900 to 949"
        in (case.precautions.stops[1])
    )


def test_deaths_that_are_far_apart_do_not_add_up(case: Case) -> None:
    for number in range(3 * MOST_DEATHS):
        case.note_death(DEATH, at(100 * number, 100 * number + 50), was_at_ease=True)
    assert case.precautions.stops == {}


def test_deaths_with_no_record_in_hand_stop_all_partitions_of_the_block(case: Case) -> None:
    assert case.note_death(DEATH, None, was_at_ease=True).endswith("it is tried again")
    case.note_death(DEATH, None, was_at_ease=False)
    assert case.precautions == Precautions(follows_death=True)
    case.note_death(DEATH, None, was_at_ease=False)
    assert case.is_given_up
    assert case.precautions.stops[1] == case.precautions.stops[2]
    assert (
        "while it had no record in hand: its clients were opened, or orders:parse was imported or opened (3 times)"
        in case.precautions.stops[1]
    )


def test_a_death_while_nothing_is_in_hand_has_less_fetched_from_there_until_a_batch_is_found(case: Case) -> None:
    said = case.note_death(DEATH, Reading(1, 20, 1_000), was_at_ease=True)
    assert case.precautions == Precautions(True, Suspicion(1, None, 1_020, 31))
    assert said == (
        "partition 1: its worker was killed by SIGSEGV while it fetched from offset 20, with no record in hand; from "
        "there on, 31 are fetched at a time"
    )
    case.note_death(DEATH, Reading(1, 20, 31), was_at_ease=False)
    assert case.precautions == Precautions(True, Suspicion(1, None, 51, 1))
    case.note_death(DEATH, Reading(1, 20, 1), was_at_ease=False)
    assert (case.precautions.suspicion, list(case.precautions.stops), case.precautions.culprits) == (None, [1], {})
    assert "while it fetched the batch at offset 20, and nothing else" in case.precautions.stops[1]
    assert "(worker_memory_mb=512); raise that" in case.precautions.stops[1]


def test_one_death_while_nothing_is_in_hand_stops_nobody(case: Case) -> None:
    """Somebody may have killed the worker, and where one record is left, one is read."""
    case.note_death(DEATH, Reading(1, 4_999, 1), was_at_ease=True)
    assert case.precautions == Precautions(True, Suspicion(1, None, 5_000, 1))
    case.note_death(DEATH, Reading(2, 4_999, 1), was_at_ease=False)
    assert case.precautions.stops == {}


def test_a_record_of_what_was_being_fetched_is_found_after_two_deaths_with_it_in_hand(case: Case) -> None:
    case.note_death(DEATH, Reading(1, 0, 20), was_at_ease=True)
    case.note_death(DEATH, at(7, 8), was_at_ease=False)
    assert case.precautions == Precautions(True, Suspicion(1, 7, 8, 1))
    case.note_death(DEATH, at(7, 8), was_at_ease=False)
    assert list(case.precautions.culprits[1]) == [7]


def test_deaths_over_nothing_that_are_far_apart_do_not_add_up(case: Case) -> None:
    for _ in range(10):
        case.note_death(DEATH, None, was_at_ease=True)
    assert case.precautions == Precautions(follows_death=True)


def test_after_the_deadline_the_next_worker_only_says_why(case: Case) -> None:
    case.note_death(DEATH, at(7, 8), was_at_ease=True)
    reason = case.give_up(at(7, 12), stored_at=1_769_860_800, overdue=61.2)
    assert case.precautions == Precautions(follows_death=True, yields=reason)
    assert reason == (
        "the run has reached its max_run_time, and 61 s later the worker was still busy with partition 1, offsets 7 to "
        "11; it had stored nothing since 2026-01-31T12:00:00+00:00, and was ended"
    )
    assert case.is_given_up
    assert "was still busy with no record" in Case(BLOCK, "x", None).give_up(None, 0, 1)


def test_of_the_trace_what_the_engine_did_is_left_out() -> None:
    trace = (
        "Fatal Python error: Segmentation fault\n\nStack (most recent call first):\n"
        '  File "orders.py", line 3 in parse\n  File "x/kpipe_engine/segments.py", line 60 in process\n'
    )
    own, engine, _ = trace.partition('  File "x/')
    assert engine
    other = '\nThread 0x1 (most recent call first):\n  File "orders.py", line 9 in wait\n'
    assert Death("crash", "died", trace).fault("x", 1).stacktrace == own
    assert Death("crash", "died", trace + other).fault("x", 1).stacktrace == own + other


def test_a_trace_in_which_the_last_call_is_the_last_stays_as_it_is() -> None:
    trace = 'Traceback (most recent call last):\n  File "x/kpipe_engine/child.py", line 3 in serve\nValueError: five\n'
    assert Death("crash", "died", trace).fault("x", 1).stacktrace == trace


def test_a_worker_that_was_ended_over_a_segment_that_hangs_leaves_a_fault_of_its_own_kind(case: Case) -> None:
    fault = Death("timeout", "was ended").fault("x", 1)
    assert (fault.kind, fault.exception_class) == ("timeout", "kpipe_engine.errors.SegmentTimeoutError")
    assert Death("crash", "died").fault("x", 1).stacktrace.strip().endswith("over this record the worker died")


@given(culprit=st.integers(0, 499_999), read=st.integers(1, 1_000), late=st.booleans())
def test_the_record_is_found_within_the_stated_number_of_deaths(culprit: int, read: int, late: bool) -> None:
    """Where the process dies only when its chunk is stored, the search is a longer one."""
    case = Case(BLOCK, "orders:parse", 512)
    stored, deaths = 0, 0
    while not case.precautions.culprits:
        stored, found = _dies_at(case.precautions.suspicion, culprit, read, stored, late)
        case.note_death(DEATH, found, was_at_ease=not deaths)
        deaths += 1
    assert list(case.precautions.culprits[1]) == [culprit]
    assert deaths <= (8 if late else 4)


def _dies_at(suspicion: Suspicion | None, culprit: int, read: int, stored: int, late: bool) -> tuple[int, At]:
    """What is stored and what was handled when a worker dies that goes on from there."""
    while True:
        end = min(stored + 500_000, 500_000)
        if suspicion is not None:
            first = suspicion.first
            before = first is not None and stored < first
            end = min(end, first if before and first is not None else stored + suspicion.records)
        if culprit < end:
            begun = (end - 1 if late else culprit) - stored
            begun = stored + begun - begun % read
            after = min(begun + read, end)
            return stored, At(1, begun, after, after - begun, after - stored)
        stored = end
