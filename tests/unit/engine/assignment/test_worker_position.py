from __future__ import annotations

import os
import time

import pytest

from airflow_provider_kpipe.contract.pipeline.scaling import MOST_IN_FLIGHT
from kpipe_engine.assignment.worker_position import At, Reading, Step, WorkerPosition

HERE = At(partition=3, first=10, after=25, read=12, in_chunk=40)


def test_they_say_where_a_worker_is() -> None:
    position = WorkerPosition()
    assert (position.at, position.is_at_ease) == (None, False)
    position.enter(HERE)
    position.note_ease(True)
    assert (position.at, position.is_at_ease) == (HERE, True)
    position.leave()
    assert position.at is None


def test_with_a_new_block_nothing_is_known() -> None:
    position = WorkerPosition()
    position.enter(HERE)
    position.note_ease(True)
    position.begin()
    assert (position.at, position.is_at_ease) == (None, False)


def test_the_longest_call_that_has_not_come_back_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [5_000_000_000]
    monkeypatch.setattr(time, "monotonic_ns", lambda: clock[0])
    position = WorkerPosition()
    assert position.longest_call == 0
    first = position.begin_call()
    clock[0] += 2_000_000_000
    second = position.begin_call()
    clock[0] += 1_000_000_000
    assert position.longest_call == 3
    position.end_call(first)
    assert position.longest_call == 1
    position.end_call(second)
    assert position.longest_call == 0
    position.begin_call()
    position.begin()
    assert position.longest_call == 0


def test_the_step_that_a_worker_is_at_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [5_000_000_000]
    monkeypatch.setattr(time, "monotonic_ns", lambda: clock[0])
    position = WorkerPosition()
    assert position.step is None
    position.begin_step("open() of segment 'a:b'")
    clock[0] += 2_000_000_000
    assert position.step == Step("open() of segment 'a:b'", 2)
    position.begin_step("é" * 300)
    assert position.step == Step("é" * 256, 0)
    position.end_step()
    assert position.step is None
    position.begin_step("close()")
    position.begin()
    assert position.step is None


def test_as_many_calls_as_there_can_be_at_once_have_room() -> None:
    position = WorkerPosition()
    assert len({position.begin_call() for _ in range(MOST_IN_FLIGHT)}) == MOST_IN_FLIGHT


def test_the_position_of_a_dead_process_remains() -> None:
    position = WorkerPosition()
    before = position.stored_at
    child = os.fork()
    if not child:
        position.enter(HERE)
        position.note_stored()
        os._exit(0)
    os.waitpid(child, 0)
    assert position.at == HERE
    assert position.stored_at >= before > 0


def test_a_worker_that_reads_has_no_record_in_hand() -> None:
    position = WorkerPosition()
    position.enter(HERE)
    position.read(Reading(partition=3, offset=25, most=1_000))
    assert (position.at, position.reading) == (None, Reading(3, 25, 1_000))
    position.enter(HERE)
    assert (position.at, position.reading) == (HERE, None)
    position.leave()
    assert (position.at, position.reading) == (None, None)
