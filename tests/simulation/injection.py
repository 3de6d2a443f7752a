"""Puts the model, virtual time, tasks and seeded chance under the real engine and Airflow's side.

Import it before anything else of the product, in a process that needs no real client.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
import types
import warnings
from types import SimpleNamespace
from typing import Any

import confluent_kafka.admin  # noqa: F401  # it is there to be replaced in

from tests.simulation.clock import VirtualLoop, VirtualTime
from tests.simulation.kafka.admin import AdminClient
from tests.simulation.kafka.consumer import Consumer
from tests.simulation.kafka.producer import Producer
from tests.simulation.stage import STAGE
from tests.simulation.threads import THREADING, Executor, Future, wait_for_answers

PRODUCT = ("kpipe_engine", "airflow_provider_kpipe")
ENTRANCES = (
    "airflow_provider_kpipe.running.attempts",
    "airflow_provider_kpipe.checkpointing.committer",
    "airflow_provider_kpipe.planning.make_plan",
    "airflow_provider_kpipe.redriving.planning",
    "airflow_provider_kpipe.redriving.ledger_topic",
    "airflow_provider_kpipe.running.stop_requests",
    "airflow_provider_kpipe.transactions.left_open",
    "airflow_provider_kpipe.planning.truncation",
    "kpipe_engine.processing.runners",
    "kpipe_engine.wiring",
    "kpipe_engine.stop_signal",
)
THREADED = (
    "airflow_provider_kpipe.kafka.bounds",
    "airflow_provider_kpipe.contract.client_log",
    "kpipe_engine.bounded_calls",
    "kpipe_engine.stop_signal",
)

MOST_REMEMBERED = 5_000


def inject() -> None:
    """Do it, once."""
    early = [name for name in sys.modules if name.startswith(("kpipe_engine", "airflow_provider_kpipe.kafka"))]
    if early:
        raise RuntimeError(f"{early[0]} has the real clients already: import tests.simulation.injection before it")
    # All `from confluent_kafka import ...` that come later find the model. Values and errors stay the real ones.
    _replace("confluent_kafka", Consumer=Consumer, Producer=Producer)
    _replace("confluent_kafka.admin", AdminClient=AdminClient)
    for name in ENTRANCES:
        importlib.import_module(name)
    _put_time_in()
    for name in THREADED:
        _replace(name, threading=THREADING)
    _replace("airflow_provider_kpipe.kafka.bounds", Future=Future)
    _replace("airflow_provider_kpipe.kafka.cluster", wait=wait_for_answers)
    _replace("airflow_provider_kpipe.transactions.left_open", ThreadPoolExecutor=Executor)
    _replace(
        "kpipe_engine.processing.runners",
        ThreadPoolExecutor=Executor,
        asyncio=_with(asyncio, new_event_loop=VirtualLoop),
    )
    # It is shared across no fork here, and memory of the kernel's takes longer.
    _replace("kpipe_engine.assignment.worker_position", mmap=SimpleNamespace(mmap=lambda _, size: bytearray(size)))
    chance = SimpleNamespace(random=lambda: STAGE.simulation.chance.random())
    _replace("kpipe_engine.processing.retries", random=chance)
    _remember_documents()
    # Those of processes that have died.
    warnings.filterwarnings("ignore", message="coroutine .* was never awaited", category=RuntimeWarning)
    # What the product warns of is what the fates do.
    logging.disable(logging.CRITICAL)


def _put_time_in() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith(PRODUCT) and isinstance(getattr(module, "time", None), types.ModuleType):
            _replace(name, time=VirtualTime)


def _replace(name: str, **other: object) -> None:
    """Put something else under names of a module, each of which it has."""
    module = sys.modules[name]
    for each, replacement in other.items():
        if not hasattr(module, each):
            raise RuntimeError(f"{name} has no {each} any more: fix tests.simulation.injection")
        setattr(module, each, replacement)


def _remember_documents() -> None:
    """Read a text once: the same one is read many times in a schedule, and what it says does not change. Where it was
    read is said only by an error, which nobody remembers."""
    document: Any = sys.modules["airflow_provider_kpipe.contract.documents"].Document
    read = document.read_text.__func__
    remembered: dict[tuple[Any, str], Any] = {}

    def read_once(kind: Any, text: str | None, where: str = "") -> Any:
        known = kind, text or ""
        if known not in remembered:
            if len(remembered) >= MOST_REMEMBERED:
                remembered.clear()
            remembered[known] = read(kind, text, where)
        return remembered[known]

    document.read_text = classmethod(read_once)


def _with(module: types.ModuleType, **other: object) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(module), **other})


inject()
