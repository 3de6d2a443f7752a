from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any

import pytest

from airflow_provider_kpipe.contract.job import DRIVER_GRACES, Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from kpipe_engine.supervision.overdue import OVERDUE, end_when_overdue
from tests.kit.plans import plan_of

NOW = 1_000_000.0


class FakeTimer:
    """Keeps what it would do, and when; it never does it by itself."""

    started: list[FakeTimer]

    def __init__(self, seconds: float, end: Any, arguments: list[Any]) -> None:
        self.seconds, self.end, self.arguments, self.daemon = seconds, end, arguments, False

    def start(self) -> None:
        assert self.daemon, "the driver would wait for it"
        FakeTimer.started.append(self)


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The codes with which the process would have ended."""
    codes: list[int] = []
    FakeTimer.started = []
    monkeypatch.setattr(threading, "Timer", FakeTimer)
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(time, "time", lambda: NOW)
    return codes


def job(partitions: int, deadline: float | None) -> Job:
    ranges = [PartitionRange(each, 0, 10 + partitions - each, 0) for each in range(partitions)]
    pipeline = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"))
    return Job(pipeline, plan_of(*ranges), deadline=deadline, grace_seconds=5.0)


def test_a_job_without_a_deadline_is_never_overdue(exits: list[int]) -> None:
    end_when_overdue(job(1, None))
    assert FakeTimer.started == []


def test_the_driver_ends_after_all_who_yield_or_end_workers(exits: list[int], caplog: pytest.LogCaptureFixture) -> None:
    end_when_overdue(job(2, NOW + 100))
    (timer,) = FakeTimer.started
    assert timer.seconds == 100 + DRIVER_GRACES * 5
    assert exits == []
    with caplog.at_level(logging.ERROR, "kpipe"):
        timer.end(*timer.arguments)
    assert exits == [OVERDUE]
    assert "tasks over the partitions 0, 1 have not come to their end" in caplog.text


def test_of_many_partitions_some_are_named(exits: list[int], caplog: pytest.LogCaptureFixture) -> None:
    end_when_overdue(job(30, NOW))
    (timer,) = FakeTimer.started
    with caplog.at_level(logging.ERROR, "kpipe"):
        timer.end(*timer.arguments)
    assert "18, 19, ... have not come" in caplog.text
