"""A worker that is stopped in the middle of its range until the test has done something to its cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airflow_provider_kpipe.contract.kafka_names import progress_group_of
from airflow_provider_kpipe.contract.plan import Plan
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, committed
from tests.kit.workers import Working

SEGMENT = "waiting_kit:held_up"


def gated(records: list[Sent], at: int, gate: Path) -> list[Sent]:
    """The same records; whoever handles the one at that place waits until the file is there."""
    held = Sent(json.dumps({"id": at, "gate": str(gate)}).encode(), records[at].key, records[at].partition)
    return [*records[:at], held, *records[at + 1 :]]


@contextmanager
def in_the_middle(bench: Bench, plan: Plan, stored: int, gate: Path) -> Iterator[Working]:
    """Inside the block so much is stored, and the worker waits; behind it, the worker has come to its end."""
    working = Working(bench.worker(plan))
    working.start()
    try:
        wait_for(lambda: stored_of(bench) >= stored, f"the first {stored} records")
        yield working
    finally:
        gate.touch()
        working.join(120)
    assert not working.is_alive()


def stored_of(bench: Bench) -> int:
    return committed(bench.bootstrap, progress_group_of(bench.pipeline.group), bench.topic, 1).get(0, 0)
