"""confluent-kafka's in-memory schema registry, shared by all segments of a test."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Message
from confluent_kafka.schema_registry import SchemaRegistryClient

from airflow_provider_kpipe.record import Origin, Record
from airflow_provider_kpipe.segments import SegmentContext

SETTINGS = {"url": "mock://"}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> SchemaRegistryClient:
    client = SchemaRegistryClient.new_client(SETTINGS)
    monkeypatch.setattr(SchemaRegistryClient, "new_client", staticmethod(lambda conf: client))
    return client


@pytest.fixture
def context() -> SegmentContext:
    return SegmentContext(
        "run",
        "orders",
        3,
        logging.getLogger("kpipe.segments"),
        destination_topic="out",
        source_registry=SETTINGS,
        destination_registry=SETTINGS,
    )


@pytest.fixture
def opened(context: SegmentContext) -> Callable[[type], Any]:
    """A segment that is open."""

    def opened_segment(segment: type) -> Any:
        made = segment()
        made.open(context)
        return made

    return opened_segment


@pytest.fixture
def record() -> Callable[..., Record]:
    """Makes a record with this value and these other parts."""

    def make(value: Any = None, **parts: Any) -> Record:
        message: Any = Message(topic="orders", partition=3, offset=7, timestamp=(1, 1_700_000_000_000))
        return Record(message, Origin("run")).copy(value=value, **{"key": b"k", **parts})

    return make
