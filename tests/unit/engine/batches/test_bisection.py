from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpipe_engine.batches.bisection import bisect_errors


class Rows:
    """Calls over rows some of which are poison; notes each call."""

    def __init__(self, poison: set[int]) -> None:
        self.poison = poison
        self.calls: list[tuple[int, int]] = []

    def call(self, start: int, stop: int) -> list[int]:
        assert start < stop
        self.calls.append((start, stop))
        found = sorted(self.poison.intersection(range(start, stop)))
        if found:
            raise ValueError(f"poison {found} in {start} to {stop}")
        return list(range(start, stop))


@st.composite
def batches(draw: st.DrawFn) -> tuple[int, set[int]]:
    count = draw(st.integers(0, 300))
    return count, draw(st.sets(st.integers(0, count - 1))) if count else set()


@given(batches())
def test_exactly_the_poison_rows_fault_and_the_others_are_there_once_and_in_order(batch: tuple[int, set[int]]) -> None:
    count, poison = batch
    done = bisect_errors(count, Rows(poison).call)
    assert set(done.errors) == poison
    assert [row for result in done.results for row in result] == [row for row in range(count) if row not in poison]


@given(batches())
def test_each_poison_row_has_the_error_that_it_raised_alone(batch: tuple[int, set[int]]) -> None:
    count, poison = batch
    done = bisect_errors(count, Rows(poison).call)
    assert {row: str(error) for row, error in done.errors.items()} == {
        row: f"poison [{row}] in {row} to {row + 1}" for row in poison
    }


@given(batches())
def test_there_are_few_calls(batch: tuple[int, set[int]]) -> None:
    count, poison = batch
    rows = Rows(poison)
    bisect_errors(count, rows.call)
    assert len(rows.calls) <= 1 + 2 * len(poison) * math.ceil(math.log2(max(count, 1)))


def test_without_poison_there_is_one_call_and_without_rows_none() -> None:
    rows = Rows(set())
    assert bisect_errors(1_000, rows.call).results == [list(range(1_000))]
    assert rows.calls == [(0, 1_000)]
    rows.calls.clear()
    assert bisect_errors(0, rows.call).results == []
    assert rows.calls == []


def test_an_error_that_is_indivisible_is_one_of_all_its_rows() -> None:
    rows = Rows({3})
    done = bisect_errors(8, rows.call, indivisible=ValueError)
    assert done.results == []
    assert set(done.errors) == set(range(8))
    assert rows.calls == [(0, 8)]


def test_a_half_may_pass_what_the_whole_did_not() -> None:
    def only_few(start: int, stop: int) -> int:
        if stop - start > 2:
            raise MemoryError
        return start

    done = bisect_errors(8, only_few)
    assert (done.results, done.errors) == ([0, 2, 4, 6], {})


class PanicError(BaseException):
    """As some libraries have, beside Exception."""


@pytest.mark.parametrize("error", [SystemExit(3), PanicError()], ids=repr)
def test_user_code_that_would_end_the_process_faults_its_row(error: BaseException) -> None:
    def leaves(start: int, stop: int) -> None:
        raise error

    assert bisect_errors(1, leaves).errors == {0: error}


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_error_that_no_row_causes_is_raised_at_once(error: type[BaseException]) -> None:
    def fails(start: int, stop: int) -> None:
        raise error

    with pytest.raises(error):
        bisect_errors(2, fails)
