"""The walk of one chunk in docs/architecture.md is the one that a worker takes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from airflow_provider_kpipe.sandbox import SandboxBroker
from kpipe_engine.partition_worker import PartitionWorker
from tests.kit.pipelines import Bench
from tests.kit.topics import fill, numbered

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
MOST_CALLS, MOST_FROM_THE_WORKER = 40, 20


def steps() -> list[tuple[str, bool]]:
    """The calls of the page in their order, and whether the worker makes them."""
    text = PAGE.read_text().partition("<!-- walk -->")[2].partition("<!-- walked -->")[0]
    return [(name, bool(star)) for name, star in re.findall(r"^\d+\. `([\w.]+)`( \\\*)?", text, re.MULTILINE)]


def calls_of(run: Callable[[], None]) -> list[tuple[str, bool]]:
    """Run, and return each function that is called, and whether a method of the worker has called it."""
    called: list[tuple[str, bool]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            caller = frame.f_back.f_code.co_qualname if frame.f_back else ""
            called.append((frame.f_code.co_qualname, caller.startswith(f"{PartitionWorker.__name__}.")))

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return called


def test_the_page_has_the_calls_of_a_chunk_with_one_record(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["orders_kit:untouched"])
    fill(bench.bootstrap, bench.topic, numbered(1))
    worker = bench.worker(bench.plan())
    worker.open()
    try:
        called = calls_of(worker.run_chunk)
    finally:
        worker.close()
    assert worker.assignment[0].progress.complete

    written = steps()
    left = iter(called)
    assert [step for step in written if step not in left] == []
    assert 0 < len(written) <= MOST_CALLS
    from_the_worker = [name for name, is_from_worker in called if is_from_worker]
    assert len(from_the_worker) <= MOST_FROM_THE_WORKER, from_the_worker
