"""The user's segments: found by import path, opened, run over each record, and closed."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from airflow_provider_kpipe.record import Record
from airflow_provider_kpipe.segments import SegmentContext
from kpipe_engine.errors import NO_RECORDS_ERRORS, PartitionHaltedError, SegmentError, shown
from kpipe_engine.faults.time_limit import NO_LIMIT, Limit

Process = Callable[[Record], Any]


class SegmentChain:
    """Segments of a pipeline, in order."""

    def __init__(self, paths: Sequence[str], context: SegmentContext, limit: Limit = NO_LIMIT) -> None:
        self._limit = limit
        self._context = context
        self._paths = paths
        self._steps: list[tuple[str, Process]] = []
        self._opened: list[tuple[str, Any]] = []

    def open(self) -> None:
        """Import and open the segments that are not open yet: a range without records opens none."""
        for path in self._paths[len(self._steps) :]:
            found = find_segment(path, self._limit)
            if not inspect.isclass(found):
                self._steps.append((path, self._limit.around(found)))
                continue
            try:
                with self._limit.step(f"open() of segment {path!r}"):
                    segment: Any = found()
                    if hasattr(segment, "open"):
                        self._settle(segment.open(self._context))
                self._opened.append((path, segment))
                self._steps.append((path, self._limit.around(segment.process)))
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as error:
                raise PartitionHaltedError(
                    f"segment {path!r} did not open: {shown(error)}; fix it or what it needs, then run again"
                ) from error

    @property
    def steps(self) -> Sequence[tuple[str, Process]]:
        """The import path and the function of each open segment."""
        return self._steps

    def count_into(self, counters: dict[str, int]) -> None:
        """Make the context count into `counters` from now on: a chunk that fails takes its counts with it."""
        self._context.counters = counters

    def process(self, record: Record, first: int = 0) -> Sequence[Record]:
        """Return the records that come out at the end: none if a segment filtered the record."""
        path = ""
        try:
            for step in self._steps[first:] if first else self._steps:
                path, process = step
                first += 1
                result = process(record)
                if type(result) is Record:
                    record = result
                elif result is None:
                    return ()
                else:
                    several = as_records(result)
                    return [last for each in several for last in self.process(each, first)]
        except (SegmentError, *NO_RECORDS_ERRORS):
            raise
        except BaseException as error:
            # Some libraries' errors are not subclasses of Exception, and one record must not end the process.
            raise SegmentError(path) from error
        return (record,)

    def close(self) -> None:
        for path, segment in reversed(self._opened):
            try:
                if hasattr(segment, "close"):
                    with self._limit.step(f"close() of segment {path!r}"):
                        self._settle(segment.close())
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException:
                # Its records are terminal by now; a failing close must not undo them.
                self._context.logger.exception("segment %r did not close", path)

    def _settle(self, result: Any) -> None:
        """Ignore the result of `open` or `close`."""


def as_records(result: Any) -> list[Record]:
    records = list(result) if isinstance(result, Iterable) and not isinstance(result, (str, bytes, dict)) else [result]
    for each in records:
        if not isinstance(each, Record):
            raise TypeError(f"a segment returns a record, several, or None; this one returned {type(each).__name__}")
    return records


def find_segment(path: str, limit: Limit = NO_LIMIT) -> Any:
    """Return the object at an import path; raise PartitionHaltedError if it cannot be a segment."""
    try:
        with limit.step(f"the import of segment {path!r}"):
            found: Any = pkgutil.resolve_name(path)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise PartitionHaltedError(
            f"segment {path!r} cannot be imported on the executor ({shown(error)}): "
            "fix its module, ship it with py_files, or install it on the executors, then run again"
        ) from error
    if not callable(found):
        raise PartitionHaltedError(f"segment {path!r} is a {type(found).__name__}, not a function or a class")
    if inspect.isclass(found) and not callable(getattr(found, "process", None)):
        raise PartitionHaltedError(f"segment class {path!r} has no method process(record)")
    return found
