"""A segment that takes Arrow batches, as a stage of its chain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from airflow_provider_kpipe.record import SourceMessage
from airflow_provider_kpipe.segments import BatchOptions, SegmentContext, StopPartitionError
from kpipe_engine.batches.arrow_batch import Batch, BatchError, matched
from kpipe_engine.batches.bisection import bisect_errors
from kpipe_engine.errors import SegmentError
from kpipe_engine.writing.output_rows import Row

Portion: TypeAlias = list[Row] | Batch


class BatchStage:
    """One batch segment. Its result stays a batch if another batch segment follows."""

    def __init__(
        self, path: str, call: Callable[[Any], Any], options: BatchOptions, context: SegmentContext, gives_rows: bool
    ) -> None:
        self._path = path
        self._call = call
        self._options = options
        self._context = context
        self._gives_rows = gives_rows

    def begin(self, messages: Sequence[SourceMessage]) -> list[Portion]:
        return [Batch.of_messages(messages)] if messages else []

    def process(self, portions: list[Portion], failed: dict[int, SegmentError]) -> list[Portion]:
        given: list[Portion] = []
        for part in (part for portion in portions for part in _apart(portion)):
            bisected = bisect_errors(len(part), partial(self._pass, part), indivisible=(BatchError, StopPartitionError))
            given += bisected.results
            messages = _messages(part) if bisected.errors else ()
            for at, cause in bisected.errors.items():
                error = SegmentError(self._path)
                error.__cause__ = cause
                failed[messages[at].offset()] = error
        return given

    def _pass(self, part: Portion, start: int, stop: int) -> Portion:
        """Call the segment once. Rows and batches are converted in here: a failed conversion is a row's error, too."""
        counted = dict(self._context.counters) if stop - start > 1 else None
        try:
            batch = part.slice(start, stop) if isinstance(part, Batch) else Batch.of(part[start:stop])
            result = matched(batch, self._call(batch.shown(self._options.headers)))
            return result.rows() if self._gives_rows else result
        except BaseException:
            if counted is not None:
                # A call that raised has no outputs, and so no counts: its rows are given to the segment again.
                self._context.counters.clear()
                self._context.counters.update(counted)
            raise


def _messages(portion: Portion) -> Sequence[SourceMessage]:
    return portion.messages if isinstance(portion, Batch) else [row[0] for row in portion]


def _apart(portion: Portion) -> list[Portion]:
    """Split a portion into parts that have each source offset once: it then identifies the row that another came from.

    If records have become several rows, their first rows go into the first part, the second into the next, and so on.
    """
    if isinstance(portion, Batch) and portion.distinct:
        return [portion]
    messages = _messages(portion)
    if len({*map(id, messages)}) == len(messages):
        return [portion]
    turns: dict[int, int] = defaultdict(int)
    parts: dict[int, list[int]] = defaultdict(list)
    for at, message in enumerate(messages):
        parts[turns[id(message)]].append(at)
        turns[id(message)] += 1
    if isinstance(portion, Batch):
        return [portion.take(positions) for positions in parts.values()]
    return [[portion[at] for at in positions] for positions in parts.values()]
