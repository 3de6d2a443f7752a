"""What tests on a real Kafka share."""

from __future__ import annotations

import logging
import os
import random
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import settings

from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from tests.kit.distribution import InOneProcess, in_order

MakeTopic = Callable[..., str]

# A busy machine is no fault of what is tested.
settings.register_profile("kpipe", deadline=None)
settings.load_profile("kpipe")


def pytest_configure() -> None:
    """Draw the seeds of random schedules here, once for all processes of a test run."""
    os.environ.setdefault("SIMULATION_SEED", str(random.SystemRandom().randrange(10**9)))


def pytest_report_header() -> str:
    return f"random schedules: SIMULATION_SEED={os.environ['SIMULATION_SEED']}"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> InOneProcess:
    return InOneProcess(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = in_order(items)


@pytest.fixture(autouse=True)
def log_of_its_own(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Keep the lines of earlier tests out of a test's log: a call that a worker has abandoned goes on in its thread."""
    earlier = set(threading.enumerate()) - {threading.current_thread()}

    def is_its_own(_: logging.LogRecord) -> bool:
        return threading.current_thread() not in earlier

    caplog.handler.addFilter(is_its_own)
    yield
    caplog.handler.removeFilter(is_its_own)


@pytest.fixture(scope="session")
def broker() -> Iterator[SandboxBroker]:
    """One broker for the whole session; tests keep apart by their topics and groups.

    A test that pauses, kills or restarts a broker takes one of its own.
    """
    with SandboxBroker() as running:
        yield running


@pytest.fixture(scope="session")
def make_topic(broker: SandboxBroker) -> MakeTopic:
    """Makes a topic on the shared broker: `make_topic("orders", partitions=4)` gives its unique name."""

    def make(prefix: str = "topic", partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        create_topics(broker.bootstrap_servers, name, partitions=partitions, config=config)
        return name

    return make
