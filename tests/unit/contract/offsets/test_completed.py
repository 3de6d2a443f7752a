"""Contiguous completion: any order in, the first gap out."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from airflow_provider_kpipe.contract.offsets.completed import CompletedOffsets


class AnyOrder(RuleBasedStateMachine):
    """Against a plain set of every offset that is completed."""

    @initialize(start=st.integers(0, 50))
    def begin(self, start: int) -> None:
        self.start = start
        self.completed = CompletedOffsets(start)
        self.model: set[int] = set()

    @rule(at=st.integers(0, 120))
    def one_record(self, at: int) -> None:
        self.completed.add(at, at + 1)
        self.model.add(at)

    @rule(first=st.integers(0, 120), length=st.integers(0, 40))
    def records_with_holes_between_them(self, first: int, length: int) -> None:
        self.completed.add(first, first + length)
        self.model.update(range(first, first + length))

    @rule()
    def again(self) -> None:
        for first, after in self.completed.beyond:
            self.completed.add(first, after)

    @rule()
    def taken_over_by_another(self) -> None:
        self.completed = CompletedOffsets(self.completed.next_offset, reversed(self.completed.beyond))

    @invariant()
    def the_next_offset_is_the_first_gap(self) -> None:
        gap = self.start
        while gap in self.model:
            gap += 1
        assert self.completed.next_offset == gap

    @invariant()
    def nothing_above_the_gap_is_forgotten(self) -> None:
        kept = {at for first, after in self.completed.beyond for at in range(first, after)}
        assert kept == {at for at in self.model if at > self.completed.next_offset}

    @invariant()
    def spans_are_apart_and_in_order(self) -> None:
        borders = [border for span in self.completed.beyond for border in span]
        assert borders == sorted(set(borders))

    @invariant()
    def the_highest_is_known(self) -> None:
        highest = max((at for at in self.model if at >= self.start), default=self.start - 1)
        assert self.completed.highest_completed == max(highest, self.start - 1)


TestAnyOrder = pytest.mark.filterwarnings("default")(AnyOrder.TestCase)
TestAnyOrder.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def test_a_span_that_ends_before_it_begins_completes_nothing() -> None:
    completed = CompletedOffsets(5)
    completed.add(9, 7)
    assert (completed.next_offset, completed.beyond) == (5, ())
