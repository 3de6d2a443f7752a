from __future__ import annotations

from typing import Any

import pytest

import airflow_provider_kpipe
from airflow_provider_kpipe.segments import MOST_COUNTERS, SegmentContext, batch_options, batch_segment
from airflow_provider_kpipe.testing import context_of


@batch_segment
def plain(batch: Any) -> Any:
    return batch


@batch_segment(headers=True)
class Wanting:
    def process(self, batch: Any) -> Any:
        return batch


class Derived(Wanting):
    pass


def test_a_mark_leaves_the_function_as_it_is() -> None:
    assert plain(7) == 7
    assert plain.__name__ == "plain"


def test_a_segment_says_what_it_asked_for() -> None:
    found = [batch_options(segment) for segment in (plain, Wanting, Derived)]
    assert [options and options.headers for options in found] == [False, True, True]


def test_an_unmarked_segment_takes_records() -> None:
    assert batch_options(lambda record: record) is None


def test_headers_are_asked_for_by_name() -> None:
    marked: Any = True
    with pytest.raises(TypeError, match=r"marks a function or a class, not True: write headers=\.\.\. by name"):
        batch_segment(marked)


def test_it_is_public() -> None:
    assert airflow_provider_kpipe.batch_segment is batch_segment


@pytest.fixture
def context() -> SegmentContext:
    return context_of()


def test_a_context_counts_by_name(context: SegmentContext) -> None:
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
    with pytest.raises(ValueError, match="'kpipe:parked': the prefix 'kpipe:' is reserved"):
        context.count("kpipe:parked")


@pytest.mark.parametrize("by", [2.5, True, "2", None], ids=repr)
def test_a_count_that_is_not_a_whole_number_is_refused(context: SegmentContext, by: Any) -> None:
    with pytest.raises(TypeError, match=r"'euros' is to go up by .*: a whole number is needed"):
        context.count("euros", by)
    assert context.counters == {}
