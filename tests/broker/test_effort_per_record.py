"""What the worker's loop does for each record, in calls and instructions: a guard against getting slower unnoticed.

Durations would say the same, and differ from machine to machine and from run to run. A run on a real broker is counted
instead: what happens at least once for each record is the record's effort, and all else, which depends on the clock,
is left out. When a number here goes up, `make bench WORK=copy` and `WORK=json` say what that costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orders_kit
import pytest

from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.effort import calls_per_record, instructions_per_record
from tests.kit.pipelines import Bench
from tests.kit.topics import fill, numbered

RECORDS = 3_000

# Instructions are those of Python 3.11; other versions make some more or less of the same code.
SLACK = 1.15

# A copy: an error is looked for, and value, key, timestamp and headers are handed to the producer.
COPY_CALLS, COPY_INSTRUCTIONS = 6, 51
# Through one segment that does nothing.
SEGMENT_CALLS, SEGMENT_INSTRUCTIONS = 13, 258
# Through one batch segment that does nothing.
BATCH_CALLS, BATCH_INSTRUCTIONS = 8, 105
# Through a segment that raises, into a dead letter with its story.
DEAD_LETTER_CALLS, DEAD_LETTER_INSTRUCTIONS = 68, 917


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
@pytest.mark.parametrize(
    ("segments", "calls", "instructions"),
    [
        ([], COPY_CALLS, COPY_INSTRUCTIONS),
        (["orders_kit:untouched"], SEGMENT_CALLS, SEGMENT_INSTRUCTIONS),
        (["batch_kit:untouched"], BATCH_CALLS, BATCH_INSTRUCTIONS),
        (["faulty_kit:fails"], DEAD_LETTER_CALLS, DEAD_LETTER_INSTRUCTIONS),
    ],
    ids=["copy", "segment", "batch", "dead letter"],
)
def test_a_record_takes_no_more_than_it_did(
    broker: SandboxBroker, delivery: str, segments: list[str], calls: int, instructions: int
) -> None:
    # A share that is counted, and that no run exceeds.
    spec = {"delivery": delivery, "segments": segments, "max_dead_letter_ratio": 1.0}
    filled_worker(broker, spec)()  # imports what is imported only once
    called = calls_per_record(filled_worker(broker, spec), RECORDS)
    ran = instructions_per_record(filled_worker(broker, spec), RECORDS)
    assert sum(called.values()) <= calls, called
    assert ran <= instructions * SLACK


def test_one_call_more_is_noticed(broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a loop that has become faster than its bound, a step back would pass: then the bound has to follow."""
    spec = {"segments": ["orders_kit:untouched"]}
    before = calls_per_record(filled_worker(broker, spec), RECORDS)
    monkeypatch.setattr(orders_kit, "untouched", lambda record, untouched=orders_kit.untouched: untouched(record))
    after = calls_per_record(filled_worker(broker, spec), RECORDS)
    assert sum(before.values()) == SEGMENT_CALLS
    assert sum(after.values()) == SEGMENT_CALLS + 1


def filled_worker(broker: SandboxBroker, spec: dict[str, Any]) -> Callable[[], None]:
    """A topic with records, and a call that takes them through the worker that a Spark task runs."""
    bench = Bench.make(broker.bootstrap_servers, **spec)
    fill(bench.bootstrap, bench.topic, [replace(each, headers=[("trace", b"1")]) for each in numbered(RECORDS)])
    worker = bench.worker(bench.plan())

    def run() -> None:
        (progress,) = worker.run()
        assert progress.counts.written + progress.counts.dead_lettered == RECORDS

    return run
