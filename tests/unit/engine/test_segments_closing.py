"""Segments that hold something: what is opened is closed."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from kpipe_engine.errors import PartitionStoppedError
from kpipe_engine.record import Record
from kpipe_engine.segments import SegmentChain, SegmentContext


def broken(*_: Any) -> None:
    raise OSError("no such host")


class Holding:
    """A segment that notes when it is opened and closed."""

    calls: list[str]

    def open(self, context: SegmentContext) -> None:
        self.calls.append(f"open {type(self).__name__}")

    def process(self, record: Record) -> Record:
        return record

    def close(self) -> None:
        self.calls.append(f"close {type(self).__name__}")


@pytest.fixture
def calls() -> Iterator[list[str]]:
    """What the segments One, Two, NoOpen (which fails to open) and NoClose (which fails to close) have done."""
    module, noted = ModuleType("holding_segments"), list[str]()
    for name, methods in {"One": {}, "Two": {}, "NoOpen": {"open": broken}, "NoClose": {"close": broken}}.items():
        setattr(module, name, type(name, (Holding,), {"calls": noted, **methods}))
    module.client = module.One()
    sys.modules[module.__name__] = module
    yield noted
    del sys.modules[module.__name__]


def chain(*names: str) -> SegmentChain:
    context = SegmentContext("run", "orders", 3, logging.getLogger("kpipe.segments"))
    return SegmentChain([f"holding_segments:{name}" for name in names], context)


def test_segments_are_closed_in_reverse_order(calls: list[str]) -> None:
    segments = chain("One", "Two")
    segments.open()
    segments.close()
    assert calls == ["open One", "open Two", "close Two", "close One"]


def test_segments_that_were_not_opened_are_not_closed(calls: list[str]) -> None:
    chain("One").close()
    assert calls == []


def test_a_segment_that_fails_to_close_is_logged_and_the_others_are_closed(
    calls: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    segments = chain("One", "NoClose", "Two")
    segments.open()
    segments.close()
    assert calls[-2:] == ["close Two", "close One"]
    (record,) = caplog.records
    assert record.getMessage() == "segment 'holding_segments:NoClose' did not close"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], OSError)


def test_a_segment_that_fails_to_open_stops_the_partition_and_the_others_are_closed(calls: list[str]) -> None:
    segments = chain("One", "NoOpen", "Two")
    with pytest.raises(PartitionStoppedError, match="'holding_segments:NoOpen' did not open: OSError: no such host"):
        segments.open()
    segments.close()
    assert calls == ["open One", "close One"]


def test_an_object_of_the_module_that_was_not_opened_here_is_not_closed_here(calls: list[str]) -> None:
    segments = chain("client.process")
    segments.open()
    segments.close()
    assert calls == []
