"""What segments say to the engine: that they take something else than a record, or that they cannot go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

Segment = TypeVar("Segment", bound=Callable[..., Any])

_MARK = "__kpipe_batch_segment__"


class StopPartitionError(Exception):
    """Raised by a segment where no record is at fault, as when something it needs does not answer.

    What the retry policy covers is tried again. Then the partition stops in front of the record, whatever `on_fault`
    says: what is complete is committed, and the next run goes on from there.
    """


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What a batch segment asked for."""

    headers: bool


@overload
def batch_segment(segment: Segment) -> Segment: ...
@overload
def batch_segment(*, headers: bool = False) -> Callable[[Segment], Segment]: ...
def batch_segment(segment: Segment | None = None, *, headers: bool = False) -> Any:
    """Mark a function, or a class with `process`, as one that takes and gives a `pyarrow.RecordBatch`.

    With `headers=True` the batch has a column of headers; it costs as much as all others together.
    """

    def mark(marked: Segment) -> Segment:
        if not callable(marked):
            raise TypeError(f"@batch_segment marks a function or a class, not {marked!r}: write headers=... by name")
        setattr(marked, _MARK, BatchOptions(headers))
        return marked

    return mark if segment is None else mark(segment)


def batch_options(segment: object) -> BatchOptions | None:
    """What a segment asked for if it is a batch segment; None for one that takes records."""
    options: BatchOptions | None = getattr(segment, _MARK, None)
    return options
