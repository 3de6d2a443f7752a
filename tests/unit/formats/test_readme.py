"""The README's own writer and reader of a format work as they are shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from formats_kit import Order, RegisterProtobuf

from kpipe_engine.segments import find_segment

README = (Path(__file__).parents[3] / "README.md").read_text()

Opened = Callable[[type], Any]
MakeRecord = Callable[..., Any]


@pytest.fixture
def shown() -> dict[str, Any]:
    (block,) = [each for each in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "formats import" in each]
    names: dict[str, Any] = {"Order": Order}
    exec(block, names)  # noqa: S102  # our own README
    return names


def test_the_writer_registers_under_the_name_it_says(
    shown: dict[str, Any], opened: Opened, record: MakeRecord, registry: SchemaRegistryClient
) -> None:
    opened(shown["WriteTotal"]).process(record({"euros": 9.5}))
    assert registry.get_subjects() == ["out-Total"]


def test_the_reader_reads_messages(shown: Any, opened: Opened, record: MakeRecord, registry: Any) -> None:
    written = opened(RegisterProtobuf).process(record(Order(id=41)))
    assert opened(shown["ReadOrder"]).process(written).value == Order(id=41)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(airflow_provider_kpipe\.formats\.\w+:\w+)`", README))))
def test_the_segments_in_the_table_are_there(path: str) -> None:
    assert callable(find_segment(path))
