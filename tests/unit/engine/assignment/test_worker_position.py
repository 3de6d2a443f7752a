from __future__ import annotations

import os

import pytest

from airflow_provider_kpipe.contract.pipeline.scaling import MOST_IN_FLIGHT
from kpipe_engine.assignment import worker_position as module
from kpipe_engine.assignment.worker_position import At, Reading, Step, WorkerPosition

HERE = At(partition=3, first=10, after=25, read=12, in_chunk=40)


def test_they_say_where_a_worker_is() -> None:
    whereabouts = WorkerPosition()
    assert (whereabouts.at, whereabouts.is_at_ease) == (None, False)
    whereabouts.enter(HERE)
    whereabouts.note_ease(True)
    assert (whereabouts.at, whereabouts.is_at_ease) == (HERE, True)
    whereabouts.leave()
    assert whereabouts.at is None


def test_with_a_new_block_nothing_is_known() -> None:
    whereabouts = WorkerPosition()
    whereabouts.enter(HERE)
    whereabouts.note_ease(True)
    whereabouts.begin()
    assert (whereabouts.at, whereabouts.is_at_ease) == (None, False)


def test_the_longest_call_that_has_not_come_back_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [5_000_000_000]
    monkeypatch.setattr(module.time, "monotonic_ns", lambda: clock[0])
    whereabouts = WorkerPosition()
    assert whereabouts.longest_call == 0
    first = whereabouts.begin_call()
    clock[0] += 2_000_000_000
    second = whereabouts.begin_call()
    clock[0] += 1_000_000_000
    assert whereabouts.longest_call == 3
    whereabouts.end_call(first)
    assert whereabouts.longest_call == 1
    whereabouts.end_call(second)
    assert whereabouts.longest_call == 0
    whereabouts.begin_call()
    whereabouts.begin()
    assert whereabouts.longest_call == 0


def test_the_step_that_a_worker_is_at_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [5_000_000_000]
    monkeypatch.setattr(module.time, "monotonic_ns", lambda: clock[0])
    whereabouts = WorkerPosition()
    assert whereabouts.step is None
    whereabouts.begin_step("open() of segment 'a:b'")
    clock[0] += 2_000_000_000
    assert whereabouts.step == Step("open() of segment 'a:b'", 2)
    whereabouts.begin_step("é" * 300)
    assert whereabouts.step == Step("é" * 256, 0)
    whereabouts.end_step()
    assert whereabouts.step is None
    whereabouts.begin_step("close()")
    whereabouts.begin()
    assert whereabouts.step is None


def test_as_many_calls_as_there_can_be_at_once_have_room() -> None:
    whereabouts = WorkerPosition()
    assert len({whereabouts.begin_call() for _ in range(MOST_IN_FLIGHT)}) == MOST_IN_FLIGHT


def test_what_another_process_has_written_is_there_when_it_is_gone() -> None:
    whereabouts = WorkerPosition()
    before = whereabouts.stored_at
    child = os.fork()
    if not child:
        whereabouts.enter(HERE)
        whereabouts.note_stored()
        os._exit(0)
    os.waitpid(child, 0)
    assert whereabouts.at == HERE
    assert whereabouts.stored_at >= before > 0


def test_a_worker_that_reads_has_no_record_in_hand() -> None:
    whereabouts = WorkerPosition()
    whereabouts.enter(HERE)
    whereabouts.read(Reading(partition=3, offset=25, most=1_000))
    assert (whereabouts.at, whereabouts.reading) == (None, Reading(3, 25, 1_000))
    whereabouts.enter(HERE)
    assert (whereabouts.at, whereabouts.reading) == (HERE, None)
    whereabouts.leave()
    assert (whereabouts.at, whereabouts.reading) == (None, None)
