from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Message

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.pipeline.policies import RetryPolicy
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import Origin, Record
from airflow_provider_kpipe.segments import SegmentContext, StopPartitionError
from kpipe_engine.errors import PartitionHaltedError, RetryLaterError, SegmentError
from kpipe_engine.processing import retries as module
from kpipe_engine.processing.retries import Retries
from kpipe_engine.processing.segment_chain import SegmentChain
from kpipe_engine.stop_signal import StopSignal
from tests.kit.clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(module, "time", fake)
    monkeypatch.setattr(StopSignal, "wait", lambda _stop_signal, seconds: fake.sleep(seconds))
    return fake


@dataclass(frozen=True)
class FrozenError(Exception):
    item: str = "tea"


def poison_frozen(record: Record) -> None:
    raise FrozenError


def poison(record: Record) -> None:
    raise ValueError("no amount")


def error(cause: Exception) -> SegmentError:
    raised = SegmentError("orders:parse")
    raised.__cause__ = cause
    return raised


def test_without_a_policy_the_first_error_is_the_fault(clock: Clock) -> None:
    fault = Retries(RetryPolicy(), StopSignal()).fault_or_wait(5, error(ValueError("no")), Counts(), math.inf)
    assert fault is not None
    assert (fault.component, fault.kind, fault.attempts, fault.retries) == ("orders:parse", "segment", 1, ())
    assert clock.slept == []


def test_the_last_of_its_tries_is_the_fault_and_the_others_are_its_history(clock: Clock) -> None:
    retries, counts = Retries(RetryPolicy.fixed(3, 0.5), StopSignal()), Counts()
    assert retries.fault_or_wait(5, error(ValueError("first")), counts, math.inf) is None
    assert retries.fault_or_wait(5, error(KeyError("second")), counts, math.inf) is None
    fault = retries.fault_or_wait(5, error(ValueError("third")), counts, math.inf)
    assert isinstance(fault, Fault)
    assert (fault.attempts, fault.message) == (3, "third")
    assert [(each.attempt, each.exception_class, each.delay_seconds) for each in fault.retries] == [
        (1, "ValueError", 0.5),
        (2, "KeyError", 0.5),
    ]
    assert clock.slept == [0.5, 0.5]
    assert counts.retried == 2
    assert retries.tried == {}


def test_an_error_that_is_not_worth_it_is_the_fault_at_once(clock: Clock) -> None:
    retries = Retries(RetryPolicy.fixed(3, 0.5, retry_on=["TimeoutError"]), StopSignal())
    assert retries.fault_or_wait(5, error(TimeoutError()), Counts(), math.inf) is None
    fault = retries.fault_or_wait(5, error(ValueError("no")), Counts(), math.inf)
    assert fault is not None
    assert (fault.attempts, fault.exception_class) == (2, "ValueError")


def test_a_wait_that_is_longer_than_the_chunk_is_for_between_chunks(clock: Clock) -> None:
    retries, counts = Retries(RetryPolicy.fixed(2, 30), StopSignal()), Counts()
    with pytest.raises(RetryLaterError):
        retries.fault_or_wait(5, error(ValueError("no")), counts, until=103.0)
    assert clock.slept == []
    clock.now += 4
    assert retries.waits == 26
    clock.now += 26
    assert retries.waits == 0
    fault = retries.fault_or_wait(5, error(ValueError("again")), counts, until=140.0)
    assert fault is not None
    assert fault.attempts == 2
    assert counts.retried == 1


def test_records_are_tried_apart(clock: Clock) -> None:
    retries: Any = Retries(RetryPolicy.fixed(2, 0), StopSignal())
    assert retries.fault_or_wait(1, error(ValueError()), Counts(), math.inf) is None
    assert retries.fault_or_wait(2, error(ValueError()), Counts(), math.inf) is None
    assert retries.fault_or_wait(1, error(ValueError()), Counts(), math.inf).attempts == 2


def test_a_partition_stops_after_its_tries_if_no_record_is_at_fault(clock: Clock) -> None:
    retries = Retries(RetryPolicy.fixed(2, 0.5), StopSignal())
    down = error(StopPartitionError("the registry is down"))
    assert retries.fault_or_wait(5, down, Counts(), math.inf) is None
    with pytest.raises(PartitionHaltedError, match=r"offset 5: segment orders:parse: .*: the registry") as stop:
        retries.fault_or_wait(5, down, Counts(), math.inf)
    assert stop.value.next_offset == 5


@pytest.mark.parametrize("name", ["poison", "poison_frozen"])
def test_a_stack_trace_begins_in_the_users_code(name: str) -> None:
    chain = SegmentChain([f"{__name__}:{name}"], SegmentContext("run", "orders", 3, logging.getLogger()))
    chain.open()
    message: Any = Message(topic="orders", offset=5, timestamp=(1, 1_700_000_000_000))
    with pytest.raises(SegmentError) as raised:
        chain.process(Record(message, Origin("run")))
    fault = Retries(RetryPolicy(), StopSignal()).fault_or_wait(5, raised.value, Counts(), math.inf)
    assert fault is not None
    assert fault.stacktrace.splitlines()[1].endswith(f"in {name}")
