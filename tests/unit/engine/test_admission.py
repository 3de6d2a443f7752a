"""Reading pauses while output waits for long, once, and resumes when it flows, once."""

from __future__ import annotations

import pytest

from kpipe_engine import admission as module
from kpipe_engine.admission import PATIENCE_SECONDS, Admission


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    return clock


def test_output_that_waits_shortly_pauses_nothing(now: list[float]) -> None:
    done: list[str] = []
    admission = Admission(lambda: done.append("pause"), lambda: done.append("resume"))
    for _ in range(10):
        admission.output_waits()
        now[0] += PATIENCE_SECONDS * 0.9
        admission.output_waits()
        admission.output_flows()
    assert done == []


def test_output_that_waits_for_long_pauses_until_it_flows(now: list[float]) -> None:
    done: list[str] = []
    admission = Admission(lambda: done.append("pause"), lambda: done.append("resume"))
    for _ in range(2):
        for _ in range(5):
            admission.output_waits()
            now[0] += PATIENCE_SECONDS * 0.6
        assert admission.paused
        admission.output_flows()
        admission.output_flows()
        assert not admission.paused
    assert done == ["pause", "resume", "pause", "resume"]
