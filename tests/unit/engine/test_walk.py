"""The walk of one chunk in docs/architecture.md is the one that a worker takes, over the model of Kafka."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import (
    KafkaDeadLetter,
    KafkaDestination,
    KafkaPipeline,
    KafkaSource,
)
from kpipe_engine.partition_worker import PartitionWorker
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.wiring import build_worker
from tests.kit.plans import plan_of
from tests.simulation.kafka.admin import AdminClient
from tests.simulation.kafka.cluster import Cluster
from tests.simulation.kafka.consumer import Consumer
from tests.simulation.kafka.log import Row
from tests.simulation.kafka.producer import Producer
from tests.simulation.scheduler import Simulation
from tests.simulation.stage import STAGE

PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"
ENGINE, WORKER = "kpipe_engine.", "kpipe_engine.partition_worker"
LOOP = (WORKER, "kpipe_engine.chunk_filler", "kpipe_engine.chunk_retry")
MOST_CALLS, MOST_FROM_THE_WORKER = 40, 20
# They are functions of their own up to Python 3.11 only.
COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>")


class Call(NamedTuple):
    caller: str
    """The module that calls."""
    name: str


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[PartitionWorker]:
    """One that has claimed a partition with one record."""
    for name, module in list(sys.modules.items()):
        for client in (AdminClient, Consumer, Producer):
            if name.startswith(ENGINE) and hasattr(module, client.__name__):
                monkeypatch.setattr(module, client.__name__, client)
    cluster = Cluster(Simulation(1))
    for topic in ("orders", "out", "dead"):
        cluster.create(topic, 1)
    cluster.append("orders", 0, [Row(b"key", b"{}")], None)
    pipeline = KafkaPipeline(
        "orders",
        KafkaSource("orders"),
        KafkaDestination("out"),
        dead_letter=KafkaDeadLetter("dead"),
        segments=["orders_kit:untouched"],
    )
    plan = plan_of(PartitionRange(0, 0, 1, 0), topic_id=cluster.topic("orders").id, owner=pipeline.owner)
    made = build_worker(Job(pipeline, plan, attempt=4), KafkaSettings({}, {}), plan.ranges, StopSignal())
    made.open()
    yield made
    made.close()
    STAGE.clear()


def calls_of(run: Callable[[], None]) -> tuple[list[Call], int]:
    """Run, and return the calls from one module of the engine to another, but for properties and constructors.

    The number is that of all calls of functions of the engine. A call through the standard library, such as that of a
    context manager, is one by the module before that.
    """
    begun: list[FrameType] = []
    found: list[Call] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        # A generator's frame is entered many times.
        if event != "call" or not module_of(frame).startswith(ENGINE) or any(frame is each for each in begun):
            return
        begun.append(frame)
        caller = frame.f_back
        while caller is not None and not module_of(caller).startswith(ENGINE):
            caller = caller.f_back
        if caller is not None and module_of(caller) != module_of(frame) and not is_left_out(frame):
            found.append(Call(module_of(caller), frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found, sum(each.f_code.co_name not in COMPREHENSIONS for each in begun)


def module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def is_left_out(frame: FrameType) -> bool:
    name = frame.f_code.co_name
    return name == "__init__" or isinstance(getattr(type(frame.f_locals.get("self")), name, None), property)


def walk() -> str:
    return PAGE.read_text().partition("<!-- walk -->")[2].partition("<!-- walked -->")[0]


def steps() -> list[tuple[str, bool]]:
    """The calls of the page in their order, and whether the worker makes them."""
    found = re.findall(r"^(\d+)\. `([\w.]+)`( \\\*)?", walk(), re.MULTILINE)
    assert [int(number) for number, _, _ in found] == [*range(1, len(found) + 1)]
    return [(name, bool(star)) for _, name, star in found]


def test_the_page_has_the_calls_that_a_chunk_with_one_record_takes(worker: PartitionWorker) -> None:
    called, every = calls_of(worker.run_chunk)
    assert worker.assignment[0].progress.complete

    of_the_loop = [(each.name, each.caller == WORKER) for each in called if each.caller in LOOP]
    assert steps() == of_the_loop
    assert len(of_the_loop) <= MOST_CALLS
    assert sum(is_of_the_worker for _, is_of_the_worker in of_the_loop) <= MOST_FROM_THE_WORKER
    text = " ".join(PAGE.read_text().split())
    assert f"Behind them are {len(called) - len(of_the_loop)} calls" in text
    (most,) = re.findall(r"fewer than (\d+) functions of the engine", text)
    assert int(most) - 20 <= every < int(most)
