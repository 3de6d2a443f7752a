"""The completed part of a range whose parts are completed in any order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
Spans: TypeAlias = tuple[Span, ...]


class CompletedOffsets:
    """Spans of completed offsets, which know their first gap.

    A span `[first, after)` covers all offsets in it. Offsets without a record (after compaction, or of a transaction's
    marker) are completed together with the record before or after them.
    """

    def __init__(self, start: int, spans: Iterable[Iterable[int]] = ()) -> None:
        self._next = start
        # The spans above the first gap, in order, with a gap between each two.
        self._beyond: list[Span] = []
        for first, after in spans:
            self.add(first, after)

    @property
    def next_offset(self) -> int:
        """The offset of the first gap: everything below it is completed."""
        return self._next

    @property
    def highest_completed(self) -> int:
        """The highest completed offset; one less than the start while nothing is completed."""
        return (self._beyond[-1][1] if self._beyond else self._next) - 1

    @property
    def beyond(self) -> tuple[Span, ...]:
        """The completed spans above the first gap."""
        return tuple(self._beyond)

    def add(self, first: int, after: int) -> None:
        """Mark the offsets from `first` to before `after` as completed; offsets completed before stay so."""
        if after <= max(first, self._next):
            return
        if first <= self._next:
            self._next = after
        else:
            self._insert(first, after)
        while self._beyond and self._beyond[0][0] <= self._next:
            self._next = max(self._next, self._beyond.pop(0)[1])

    def _insert(self, first: int, after: int) -> None:
        spans = self._beyond
        low = bisect_right(spans, (first, first))
        if low and spans[low - 1][1] >= first:
            low -= 1
        high = low
        while high < len(spans) and spans[high][0] <= after:
            high += 1
        if low < high:
            first, after = min(first, spans[low][0]), max(after, spans[high - 1][1])
        spans[low:high] = [(first, after)]
