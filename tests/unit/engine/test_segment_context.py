from __future__ import annotations

import contextvars
import logging
from typing import Any

import pytest

from airflow_provider_kpipe.contract.progress import Counts
from kpipe_engine.crews import ConcurrentContext, _counters
from kpipe_engine.segments import MOST_COUNTERS, SegmentChain, SegmentContext


@pytest.fixture
def context() -> SegmentContext:
    return SegmentContext("run", "orders", 0, logging.getLogger("test"))


def test_it_counts_by_name(context: SegmentContext) -> None:
    context.count("refunds")
    context.count("refunds", 4)
    context.count("euros", 250)
    assert context.counters == {"refunds": 5, "euros": 250}


@pytest.mark.parametrize("name", ["", "x" * 41, "é" * 21, 7, None], ids=repr)
def test_a_name_that_does_not_fit_beside_an_offset_is_refused(context: SegmentContext, name: Any) -> None:
    with pytest.raises(ValueError, match="a name has 1 to 40 bytes"):
        context.count(name)


def test_names_that_are_too_many_count_together(context: SegmentContext, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(MOST_COUNTERS):
        context.count(f"counter-{number}")
    assert caplog.messages == []
    for _ in range(2):
        context.count("one-more", 3)
        context.count("another")
    context.count("counter-0")
    assert caplog.messages == ["counter 'one-more' and more: after 20 names, they count as 'others'"]
    assert len(context.counters) == MOST_COUNTERS + 1
    assert (context.counters["others"], context.counters["counter-0"]) == (8, 2)


def test_names_of_an_earlier_try_are_among_them(context: SegmentContext) -> None:
    context.counters = {f"counter-{number}": 1 for number in range(MOST_COUNTERS)} | {"others": 5}
    context.count("counter-3")
    context.count("one-more")
    assert (context.counters["counter-3"], context.counters["others"]) == (2, 6)


def test_names_of_the_engine_itself_are_refused(context: SegmentContext) -> None:
    with pytest.raises(ValueError, match="'kpipe:parked': names that begin with 'kpipe:' are kpipe's own"):
        context.count("kpipe:parked")


@pytest.mark.parametrize("by", [2.5, True, "2", None], ids=repr)
def test_what_could_not_be_read_back_is_refused(context: SegmentContext, by: Any) -> None:
    with pytest.raises(TypeError, match=r"'euros' is to go up by .*: a whole number is needed"):
        context.count("euros", by)
    assert context.counters == {}


def test_names_that_are_too_many_count_together_where_records_count_by_themselves() -> None:
    context = ConcurrentContext("run", "orders", 0, logging.getLogger("test"))
    context.counters = {"of an earlier try": 1}
    for number in range(MOST_COUNTERS - 1):
        contextvars.copy_context().run(_count_alone, context, f"counter-{number}")
    assert contextvars.copy_context().run(_count_alone, context, "one-more") == {"others": 1}


def _count_alone(context: ConcurrentContext, name: str) -> dict[str, int]:
    _counters.set({})
    context.count(name)
    return _counters.get()


def test_a_chunk_that_comes_to_nothing_takes_its_counts_with_it(context: SegmentContext) -> None:
    chain = SegmentChain([], context)
    stored = Counts(named={"refunds": 2})
    failed, redone = stored.copy(), stored.copy()
    chain.count_into(failed.named)
    context.count("refunds")
    chain.count_into(redone.named)
    context.count("refunds", 5)
    assert (stored.named, failed.named, redone.named) == ({"refunds": 2}, {"refunds": 3}, {"refunds": 7})


def test_named_counts_add_up() -> None:
    total = Counts(read=1, named={"a": 1, "b": 2}) + Counts(read=2, named={"b": 3, "c": 4})
    assert total == Counts(read=3, named={"a": 1, "b": 5, "c": 4})
