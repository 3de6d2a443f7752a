from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from kpipe_engine.assignment.worker_position import WorkerPosition
from kpipe_engine.errors import SegmentTimeoutError
from kpipe_engine.faults.time_limit import TimeLimit
from kpipe_engine.wiring import choose_limit
from tests.kit.plans import plan_of

PLAN = plan_of(PartitionRange(0, 0, 9, 0))


@pytest.fixture
def position() -> WorkerPosition:
    return WorkerPosition()


def hangs(_given: Any) -> Any:
    time.sleep(600)


def hangs_and_catches(_given: Any) -> Any:
    with contextlib.suppress(Exception):
        time.sleep(600)


async def awaits(given: Any) -> Any:
    await asyncio.sleep(given)
    return "done"


def job(segment_timeout: float | None, grace_seconds: float = 60.0) -> Job:
    pipeline = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"), segment_timeout=segment_timeout)
    return Job(pipeline, PLAN, grace_seconds=grace_seconds)


def test_without_seconds_there_is_no_limit_and_no_call_more(position: WorkerPosition) -> None:
    limit = choose_limit(job(None), position)
    assert limit.around(hangs) is hangs
    with limit.step("open()"):
        assert position.step is None


@pytest.mark.parametrize(("segment_timeout", "seconds"), [(0.05, "0.3 s"), (0.4, "0.4 s")])
def test_steps_beside_records_have_at_least_the_grace_of_the_job(
    position: WorkerPosition, segment_timeout: float, seconds: str
) -> None:
    limit = choose_limit(job(segment_timeout, grace_seconds=0.3), position)
    with (
        pytest.raises(SegmentTimeoutError, match=rf"^no answer within {seconds}, in open\(\) of segment 'a:b'$"),
        limit.step("open() of segment 'a:b'"),
    ):
        hangs(None)
    assert position.step is None
    # The next record has its own limit again.
    with pytest.raises(SegmentTimeoutError, match=f"within segment_timeout, {segment_timeout:g} s"):
        limit.around(hangs)(None)


def test_a_step_is_told_while_it_lasts_and_nothing_rings_later(position: WorkerPosition) -> None:
    with TimeLimit(0.01, 0.1, position).step("open()"):
        assert position.step
        assert position.step.name == "open()"
    threading.Event().wait(0.2)
    assert position.step is None


def test_a_step_is_interrupted_also_after_another_limit_has_hung_up_its_bell(position: WorkerPosition) -> None:
    limit = TimeLimit(60, 0.05, position)
    TimeLimit(60, 60, WorkerPosition())
    with pytest.raises(SegmentTimeoutError), limit.step("close()"):
        hangs(None)


@pytest.mark.parametrize("call", [hangs, hangs_and_catches])
def test_a_call_that_takes_too_long_is_interrupted(position: WorkerPosition, call: Any) -> None:
    limited = TimeLimit(0.05, 60, position).around(call)
    for _ in range(2):
        with pytest.raises(SegmentTimeoutError, match=r"no answer within segment_timeout, 0\.05 s"):
            limited(None)
    assert position.longest_call == 0


def gives_out_none(_given: Any) -> Iterator[Any]:
    time.sleep(600)
    yield None


def test_a_generator_that_gives_out_nothing_is_interrupted(position: WorkerPosition) -> None:
    limited = TimeLimit(0.05, 60, position).around(gives_out_none)
    with pytest.raises(SegmentTimeoutError):
        limited(None)
    assert TimeLimit(60, 60, position).around(lambda given: (each for each in given))("ab") == ["a", "b"]


def test_a_call_that_comes_back_gives_what_it_gives_and_nothing_rings_later(position: WorkerPosition) -> None:
    limited = TimeLimit(0.05, 60, position).around(str.upper)
    assert limited("given") == "GIVEN"
    threading.Event().wait(0.1)
    assert position.longest_call == 0


def test_a_bell_that_rings_when_the_call_is_over_does_nothing(position: WorkerPosition) -> None:
    TimeLimit(0.05, 60, position)._ring(14, inspect.currentframe())


def test_a_bell_of_the_call_before_does_not_interrupt_the_next_one(position: WorkerPosition) -> None:
    limit = TimeLimit(60, 60, position)

    def late(given: str) -> str:
        limit._ring(14, inspect.currentframe())
        return given.upper()

    assert limit.around(late)("given") == "GIVEN"


def test_an_error_of_the_call_stays_what_it_is(position: WorkerPosition) -> None:
    with pytest.raises(ZeroDivisionError):
        TimeLimit(60, 60, position).around(lambda given: 1 // given)(0)
    assert position.longest_call == 0


def test_in_another_thread_the_whereabouts_say_how_long_a_call_has_been_at_it(position: WorkerPosition) -> None:
    begun, go = threading.Event(), threading.Event()

    def waits(_given: Any) -> bool:
        begun.set()
        return go.wait(60)

    thread = threading.Thread(target=TimeLimit(0.001, 60, position).around(waits), args=[None])
    thread.start()
    assert begun.wait(60)
    assert position.longest_call > 0
    go.set()
    thread.join()
    assert position.longest_call == 0


def test_an_awaited_call_is_cancelled(position: WorkerPosition) -> None:
    limited = TimeLimit(0.05, 60, position).around(awaits)
    assert inspect.iscoroutinefunction(limited)
    assert asyncio.run(limited(0)) == "done"
    with pytest.raises(SegmentTimeoutError):
        asyncio.run(limited(600))
    assert position.longest_call == 0


def test_a_timeout_of_the_segments_own_is_an_error_like_any_other(position: WorkerPosition) -> None:
    async def fails(_given: Any) -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        asyncio.run(TimeLimit(60, 60, position).around(fails)(None))
