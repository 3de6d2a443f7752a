"""The guide's own writer and reader of a format work as they are shown."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from docs_kit import GUIDE, python_blocks
from formats_kit import Order, RegisterProtobuf

from kpipe_engine.processing.segment_chain import find_segment

PAGE = GUIDE / "segments.md"

Opened = Callable[[type], Any]
MakeRecord = Callable[..., Any]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    (block,) = [each for each in python_blocks(PAGE) if "formats import" in each]
    monkeypatch.setitem(sys.modules, "orders_pb2", SimpleNamespace(Order=Order))
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102  # our own documentation
    return names


def test_the_writer_registers_under_the_name_it_says(
    shown: dict[str, Any], opened: Opened, record: MakeRecord, registry: SchemaRegistryClient
) -> None:
    opened(shown["WriteTotal"]).process(record({"euros": 9.5}))
    assert registry.get_subjects() == ["out-Total"]


def test_the_reader_reads_messages(shown: Any, opened: Opened, record: MakeRecord, registry: Any) -> None:
    written = opened(RegisterProtobuf).process(record(Order(id=41)))
    assert opened(shown["ReadOrder"]).process(written).value == Order(id=41)


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`(airflow_provider_kpipe\.formats\.\w+:\w+)`", PAGE.read_text())))
)
def test_the_segments_in_the_table_are_there(path: str) -> None:
    assert callable(find_segment(path))
