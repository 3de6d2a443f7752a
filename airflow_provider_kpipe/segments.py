"""The interface between segments and the engine, besides records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from airflow_provider_kpipe.contract.progress.progress import OWN_COUNTERS

# All of them have to fit beside a stored offset.
MOST_COUNTERS = 20
LONGEST_COUNTER_NAME = 40
OTHERS = "others"

Segment = TypeVar("Segment", bound=Callable[..., Any])

_MARK = "__kpipe_batch_segment__"


class StopPartitionError(Exception):
    """An error for a segment to raise if no record is at fault, as when a service that it needs does not answer.

    If the retry policy covers the error, the engine tries again. Then the partition stops in front of the record,
    whatever `on_fault` is: the complete records are committed, and the next run resumes there.
    """


@dataclass(slots=True)
class SegmentContext:
    """The context that a segment class gets in `open`."""

    run_key: str
    topic: str
    partition: int
    logger: logging.Logger
    counters: dict[str, int] = field(default_factory=dict)
    destination_topic: str = ""
    source_registry: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings of the schema registry beside the source; they hold secrets."""
    destination_registry: Mapping[str, str] = field(default_factory=dict, repr=False)
    _names: set[str] = field(default_factory=set, init=False, repr=False)
    """The names of all counters so far, even of those whose records failed."""

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter; the totals are in the checkpoint's XCom, as exact as those of the records."""
        name = self._checked(name, by)
        self.counters[name] = self.counters.get(name, 0) + by

    def _checked(self, name: str, by: int) -> str:
        """Return the name to count under, as one counter too many must not become the fault of a good record."""
        # The count is stored beside the offset, and read back strictly.
        if type(by) is not int:
            raise TypeError(f"counter {name!r} is to go up by {by!r}: a whole number is needed")
        if name in self._names:
            return name
        if not isinstance(name, str) or not 0 < len(name.encode()) <= LONGEST_COUNTER_NAME:
            raise ValueError(f"counter {name!r}: a name has 1 to {LONGEST_COUNTER_NAME} bytes")
        if name.startswith(OWN_COUNTERS):
            raise ValueError(f"counter {name!r}: the prefix {OWN_COUNTERS!r} is reserved")
        # The chunk's counters include the names that earlier tries have counted.
        if len((self._names | self.counters.keys() | {name}) - {OTHERS}) > MOST_COUNTERS:
            if OTHERS not in self._names:
                self.logger.warning(
                    "counter %r and more: after %d names, they count as %r", name, MOST_COUNTERS, OTHERS
                )
            name = OTHERS
        self._names.add(name)
        return name


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """The options of a batch segment."""

    headers: bool


@overload
def batch_segment(segment: Segment) -> Segment: ...
@overload
def batch_segment(*, headers: bool = False) -> Callable[[Segment], Segment]: ...
def batch_segment(segment: Segment | None = None, *, headers: bool = False) -> Any:
    """Mark a function, or a class with `process`, as one that takes and returns a `pyarrow.RecordBatch`.

    With `headers=True` the batch has a column of headers; it costs as much as all other columns together.
    """

    def mark(marked: Segment) -> Segment:
        if not callable(marked):
            raise TypeError(f"@batch_segment marks a function or a class, not {marked!r}: write headers=... by name")
        setattr(marked, _MARK, BatchOptions(headers))
        return marked

    return mark if segment is None else mark(segment)


def batch_options(segment: object) -> BatchOptions | None:
    """Return the options of a batch segment; None for a segment that takes records."""
    options: BatchOptions | None = getattr(segment, _MARK, None)
    return options
