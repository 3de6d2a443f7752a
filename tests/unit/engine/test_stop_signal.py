from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import TopicPartition

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.progress.stop_request import StopRequest
from kpipe_engine import stop_signal as yielding
from kpipe_engine.stop_signal import KafkaStopSignal, StopSignal
from tests.kit.plans import plan_of

NEWER = StopRequest(3, "").to_text().replace('"schema_version":1', '"schema_version":99')


def test_without_an_order_there_is_no_reason() -> None:
    assert StopSignal().reason is None
    assert StopSignal(deadline=time.time() + 3_600).reason is None


def test_a_deadline_that_has_passed_is_a_reason() -> None:
    stop_signal = StopSignal(deadline=time.time() - 1)
    assert stop_signal.reason == "the run has reached its max_run_time"
    assert stop_signal.is_set


def test_a_stop_request_carries_its_reason() -> None:
    stop_signal = StopSignal()
    stop_signal.request("somebody stopped the task")
    assert (stop_signal.reason, stop_signal.is_set) == ("somebody stopped the task", True)


class Waits(threading.Event):
    """Notes for how long it was to be waited for, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.noted.append(timeout)
        return self.is_set()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    made = Waits()
    monkeypatch.setattr(yielding, "threading", SimpleNamespace(Event=lambda: made))
    return made


def test_a_stop_request_wakes_a_resting_worker(waits: Waits) -> None:
    stop_signal = StopSignal()
    stop_signal.wait(3_600)
    assert (waits.noted, waits.is_set()) == ([3_600], False)
    stop_signal.request("enough")
    assert waits.is_set()


def test_nobody_rests_beyond_the_deadline(waits: Waits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yielding, "time", SimpleNamespace(time=lambda: 1_000.0))
    StopSignal(deadline=1_060.0).wait(3_600)
    StopSignal(deadline=1_060.0).wait(5)
    StopSignal(deadline=999.0).wait(3_600)
    assert waits.noted == [60.0, 5, 0.0]


@pytest.mark.parametrize(
    ("attempt", "held", "reason"),
    [
        (0, "", None),
        (3, "somebody else's", None),
        (2, StopRequest(2, "an earlier attempt").to_text(), None),
        (3, StopRequest(3, "the task was stopped").to_text(), "the task was stopped"),
        (2, NEWER, None),
        (3, NEWER, "a stop request cannot be read: StopRequest.schema_version is 99"),
    ],
)
def test_a_request_to_stop_is_heeded_also_where_another_version_wrote_it(
    attempt: int, held: str, reason: str | None
) -> None:
    pipeline = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"))
    stop_signal = KafkaStopSignal(Job(pipeline, plan_of(PartitionRange(0, 0, 5, None)), 3), {})

    class Holder:
        def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
            return [TopicPartition(asked[0].topic, asked[0].partition, attempt, held)]

    stop_signal._look(cast("Any", Holder()), [TopicPartition("orders", 0)])
    if reason is None:
        assert stop_signal.reason is None
    else:
        assert (stop_signal.reason or "").startswith(reason)
