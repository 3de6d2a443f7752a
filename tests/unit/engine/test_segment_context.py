from __future__ import annotations

import logging
from typing import Any

import pytest

from airflow_provider_kpipe.contract.progress import Counts
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


def test_too_many_names_are_refused(context: SegmentContext) -> None:
    for number in range(MOST_COUNTERS):
        context.count(f"counter-{number}")
    context.count("counter-0")
    with pytest.raises(ValueError, match="'one-more' is one more than the 20"):
        context.count("one-more")


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
