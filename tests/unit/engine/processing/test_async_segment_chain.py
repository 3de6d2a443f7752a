from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from airflow_provider_kpipe.record import Origin, Record, SourceMessage
from airflow_provider_kpipe.segments import SegmentContext
from kpipe_engine.errors import SegmentError
from kpipe_engine.processing.async_segment_chain import AsyncSegmentChain, has_async


@pytest.fixture
def user() -> Iterator[Any]:
    """The user's module, filled by each test."""
    module = ModuleType("user_async")
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture
def chain(loop: asyncio.AbstractEventLoop) -> Callable[..., AsyncSegmentChain]:
    def make(*names: str) -> AsyncSegmentChain:
        context = SegmentContext("run", "orders", 3, logging.getLogger("kpipe.segments"))
        made = AsyncSegmentChain([f"user_async:{name}" for name in names], context, loop)
        made.open()
        return made

    return make


@pytest.fixture
def process(
    chain: Callable[..., AsyncSegmentChain], loop: asyncio.AbstractEventLoop, message: Callable[..., SourceMessage]
) -> Callable[..., list[Any]]:
    """Takes a record through the segments of these names, and gives the values that come out."""

    def run(*names: str) -> list[Any]:
        found = loop.run_until_complete(chain(*names).process_awaiting(Record(message(5, b"v"), Origin("run"))))
        return [record.value for record in found]

    return run


def appending(letter: bytes) -> Callable[[Record], Any]:
    async def append(record: Record) -> Record:
        await asyncio.sleep(0)
        record.value += letter
        return record

    return append


async def drop(record: Record) -> None:
    await asyncio.sleep(0)


async def split(record: Record) -> list[Record]:
    return [record.copy(value=b"a"), record.copy(value=b"b")]


def test_awaited_and_plain_segments_run_in_their_order(user: Any, process: Callable[..., list[Any]]) -> None:
    user.one, user.two, user.plain = appending(b"1"), appending(b"2"), lambda record: record.copy(value=b"plain")
    assert process("plain", "one", "two") == [b"plain12"]
    assert process("one", "plain", "two") == [b"plain2"]
    assert process() == [b"v"]


def test_a_record_may_end_or_become_several(user: Any, process: Callable[..., list[Any]]) -> None:
    user.drop, user.split, user.one = drop, split, appending(b"1")
    assert process("split", "one") == [b"a1", b"b1"]
    assert process("split", "split") == [b"a", b"b", b"a", b"b"]
    assert process("one", "drop", "one") == []


@pytest.mark.parametrize("names", [("bad",), ("one", "bad", "one"), ("split", "bad")])
def test_the_segment_that_raises_is_named(user: Any, process: Callable[..., list[Any]], names: tuple[str, ...]) -> None:
    async def bad(record: Record) -> None:
        raise TimeoutError("no answer")

    user.bad, user.one, user.split = bad, appending(b"1"), split
    with pytest.raises(SegmentError) as fault:
        process(*names)
    assert fault.value.segment == "user_async:bad"
    assert isinstance(fault.value.__cause__, TimeoutError)


def test_a_lack_of_memory_is_no_fault_of_a_record(user: Any, process: Callable[..., list[Any]]) -> None:
    async def greedy(record: Record) -> None:
        raise MemoryError

    user.greedy = greedy
    with pytest.raises(MemoryError):
        process("greedy")


def test_a_segment_may_await_as_it_opens_and_closes(user: Any, chain: Callable[..., AsyncSegmentChain]) -> None:
    calls: list[str] = []

    class Step:
        async def open(self, context: SegmentContext) -> None:
            await asyncio.sleep(0)
            calls.append(f"open {context.partition}")

        async def process(self, record: Record) -> Record:
            return record

        async def close(self) -> None:
            await asyncio.sleep(0)
            calls.append("close")

    user.Step = Step
    chain("Step").close()
    assert calls == ["open 3", "close"]


def test_awaited_segments_are_recognized_by_their_function_or_method() -> None:
    class Awaited:
        async def process(self, record: Record) -> Record:
            return record

    class Plain:
        def process(self, record: Record) -> Record:
            return record

    assert has_async([Plain, drop])
    assert has_async([Awaited])
    assert not has_async([Plain, lambda record: record])
    assert not has_async([])
