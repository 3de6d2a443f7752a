from __future__ import annotations

import logging
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination
from airflow_provider_kpipe.contract.pipeline.policies import RetryPolicy
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import Origin, Record, SourceMessage
from kpipe_engine.processing import retries as module
from kpipe_engine.processing.concurrent import ConcurrentProcessor
from kpipe_engine.processing.retries import Retries
from kpipe_engine.processing.runners import ConcurrentContext, ThreadRunner
from kpipe_engine.processing.segment_chain import SegmentChain
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing.destination import Destination
from tests.kit.clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(module, "time", fake)
    return fake


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """How often each record was tried: with the second try it passes."""
    counted: dict[int, int] = defaultdict(int)

    def fail_first(record: Record) -> Record:
        offset = record.metadata.offset
        counted[offset] += 1
        if counted[offset] == 1:
            raise TimeoutError
        return record

    users = ModuleType("user_segments")
    vars(users)["fail_first"] = fail_first
    monkeypatch.setitem(sys.modules, "user_segments", users)
    return counted


def test_each_record_waits_for_its_own_time(
    clock: Clock,
    tries: dict[int, int],
    message: Callable[..., SourceMessage],
    session: Any,
    producer: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    delays = iter([10.0, 30.0])
    monkeypatch.setattr(RetryPolicy, "delay_after", lambda *_which: next(delays))
    stop_signal = StopSignal()
    retries = Retries(RetryPolicy.fixed(4, 10.0), stop_signal)
    chain = SegmentChain(["user_segments:fail_first"], ConcurrentContext("run", "orders", 3, logging.getLogger()))
    runner = ThreadRunner(chain, retries, Origin("run"), stop_signal, at_once=1)
    nobody: Any = None
    processor = ConcurrentProcessor(runner, Destination(KafkaDestination("out"), session), nobody, retries)
    messages, counts = [message(5), message(6)], Counts()
    processor.open()

    def process() -> int:
        # The runner's own clock is the real one.
        return processor.process(messages, counts, {}, time.monotonic() + 60)

    monkeypatch.setattr(Retries, "fault_or_delay", _never_within_the_chunk(Retries.fault_or_delay))
    assert (process(), dict(tries), retries.waits) == (0, {5: 1, 6: 1}, 10.0)
    clock.now += 10
    assert (process(), dict(tries)) == (1, {5: 2, 6: 1})
    messages.pop(0)
    assert retries.waits == 20.0
    clock.now += 20
    assert (process(), dict(tries), retries.waits) == (1, {5: 2, 6: 2}, 0.0)
    assert counts.written == 2
    processor.close()


def _never_within_the_chunk(own: Callable[..., Any]) -> Callable[..., Any]:
    return lambda retries, offset, error, counts, _until: own(retries, offset, error, counts, 0.0)
