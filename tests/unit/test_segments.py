from __future__ import annotations

from typing import Any

import pytest

import airflow_provider_kpipe
from airflow_provider_kpipe.segments import batch_options, batch_segment


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


def test_what_is_not_marked_takes_records() -> None:
    assert batch_options(lambda record: record) is None


def test_headers_are_asked_for_by_name() -> None:
    marked: Any = True
    with pytest.raises(TypeError, match=r"marks a function or a class, not True: write headers=\.\.\. by name"):
        batch_segment(marked)


def test_it_is_public() -> None:
    assert airflow_provider_kpipe.batch_segment is batch_segment
