from __future__ import annotations

import contextvars
import logging
import math
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from airflow_provider_kpipe.contract.pipeline.policies import RetryPolicy
from airflow_provider_kpipe.record import Origin, Record, SourceMessage
from airflow_provider_kpipe.segments import MOST_COUNTERS
from kpipe_engine.processing.retries import Retries
from kpipe_engine.processing.runners import ConcurrentContext, EventLoopRunner, _counters
from kpipe_engine.stop_signal import StopSignal


def test_where_segments_are_awaited_nobody_sleeps_through_an_order(
    monkeypatch: pytest.MonkeyPatch, message: Callable[..., SourceMessage]
) -> None:
    stop_signal = StopSignal()

    async def never(record: Record) -> None:
        if record.metadata.offset == 6:
            # The record before it waits for its next try by now.
            stop_signal.request("enough")
        raise TimeoutError

    users = ModuleType("user_segments")
    vars(users)["never"] = never
    monkeypatch.setitem(sys.modules, "user_segments", users)
    context = ConcurrentContext("run", "orders", 3, logging.getLogger())
    retries = Retries(RetryPolicy.fixed(2, 3_600), stop_signal)
    runner = EventLoopRunner(["user_segments:never"], context, retries, Origin("run"), stop_signal, at_once=2)
    runner.open()
    outcomes = runner.work([message(5), message(6)], until=math.inf)
    assert [(each.is_due, each.fault) for each in outcomes] == [(False, None)] * 2
    runner.close()


def test_names_that_are_too_many_count_together_where_records_count_by_themselves() -> None:
    context = ConcurrentContext("run", "orders", 0, logging.getLogger("test"))
    context.counters = {"of an earlier try": 1}
    for number in range(MOST_COUNTERS - 1):
        contextvars.copy_context().run(_count_alone, context, f"counter-{number}")
    assert contextvars.copy_context().run(_count_alone, context, "one-more") == {"others": 1}


def _count_alone(context: ConcurrentContext, name: str) -> dict[str, int]:
    _counters.set({})
    context.count(name)
    return _counters.get()
