"""A chain in which some segments take Arrow batches, compiled into stages over many records at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from airflow_provider_kpipe.record import Origin, SourceMessage
from airflow_provider_kpipe.segments import BatchOptions, SegmentContext, StopPartitionError, batch_options
from kpipe_engine.errors import PartitionHaltedError, SegmentError
from kpipe_engine.faults.time_limit import NO_LIMIT, Limit
from kpipe_engine.processing.async_segment_chain import has_async
from kpipe_engine.processing.segment_chain import SegmentChain, find_segment
from kpipe_engine.writing.output_rows import Row, in_source_order, record_of_row, row_of_message, row_of_record

Failed: TypeAlias = dict[int, SegmentError]
"""The errors of the records that could not pass, by source offset."""


class Stage(Protocol):
    """Part of a chain that takes and returns rows in portions, and notes the records that failed."""

    def begin(self, messages: Sequence[SourceMessage]) -> list[Any]:
        """Return the messages in portions, in the form that this stage takes if it is the first."""

    def process(self, portions: list[Any], failed: Failed) -> list[Any]: ...


class RecordStage:
    """Consecutive segments that take records."""

    def __init__(self, segments: SegmentChain, origin: Origin) -> None:
        self._segments = segments
        self._origin = origin

    def begin(self, messages: Sequence[SourceMessage]) -> list[list[Row]]:
        return [[row_of_message(message) for message in messages]]

    def process(self, portions: list[list[Row]], failed: Failed) -> list[list[Row]]:
        given: list[Row] = []
        down: SegmentError | None = None
        for row in in_source_order(portions):
            message = row[0]
            if message.offset() in failed:
                continue
            if down is not None:
                # A service that does not answer for one record is not asked a thousand times.
                failed[message.offset()] = down
                continue
            try:
                records = self._segments.process(record_of_row(row, self._origin))
            except SegmentError as error:
                failed[message.offset()] = error
                down = error if isinstance(error.__cause__, StopPartitionError) else None
            else:
                given += [row_of_record(message, record) for record in records]
        return [given]


class StageChain:
    """All segments of a pipeline, in order, as stages."""

    def __init__(self, paths: Sequence[str], context: SegmentContext, origin: Origin, limit: Limit = NO_LIMIT) -> None:
        self._limit = limit
        self._paths = paths
        self._context = context
        self._origin = origin
        self._chains: list[SegmentChain] = []
        self._stages: list[Stage] = []

    def open(self) -> None:
        """Import and open the segments that are not open yet: a range without records opens none."""
        found = [] if self._stages else [(path, find_segment(path, self._limit)) for path in self._paths]
        groups = list(_grouped(found))
        if has_async(segment for _path, segment in found):
            raise PartitionHaltedError(
                f"the segments {', '.join(map(repr, self._paths))} are in part `async def` and in part take Arrow "
                "batches, which cannot be combined: make two pipelines of them, or let the batch segment wait by itself"
            )
        for at, (paths, options) in enumerate(groups):
            chain = SegmentChain(paths, self._context, self._limit)
            self._chains.append(chain)
            chain.open()
            if options is None:
                self._stages.append(RecordStage(chain, self._origin))
            else:
                batch_follows = at + 1 < len(groups) and groups[at + 1][1] is not None
                self._stages.append(self._batch_stage(chain, options, gives_rows=not batch_follows))

    def count_into(self, counters: dict[str, int]) -> None:
        """Make the segments' context count into `counters` from now on."""
        self._context.counters = counters

    def process(self, messages: Sequence[SourceMessage]) -> tuple[list[Row], Failed]:
        """Return all rows that come out at the end, in source order, and the error of each record that did not pass."""
        failed: Failed = {}
        portions = self._stages[0].begin(messages)
        for stage in self._stages:
            portions = stage.process(portions, failed)
        rows = in_source_order(portions)
        if failed:
            # A record that had become several fails as a whole.
            rows = [row for row in rows if row[0].offset() not in failed]
        return rows, failed

    def close(self) -> None:
        for chain in reversed(self._chains):
            chain.close()

    def _batch_stage(self, chain: SegmentChain, options: BatchOptions, gives_rows: bool) -> Stage:
        ((path, call),) = chain.steps
        try:
            # Arrow is imported only here: other pipelines run without it.
            from kpipe_engine.batches.arrow_segment import BatchStage
        except ImportError as error:
            raise PartitionHaltedError(
                f"segment {path!r} takes Arrow batches, and pyarrow cannot be imported on the executor ({error}): "
                "install it there"
            ) from error
        return BatchStage(path, call, options, self._context, gives_rows)


def has_batches(segments: Iterable[Any]) -> bool:
    """Tell whether any segment takes batches."""
    return any(map(batch_options, segments))


def _grouped(found: Sequence[tuple[str, Any]]) -> Iterator[tuple[list[str], BatchOptions | None]]:
    """Yield each batch segment by itself, and the record segments between them together."""
    records: list[str] = []
    for path, segment in found:
        options = batch_options(segment)
        if options is None:
            records.append(path)
            continue
        if records:
            yield records, None
            records = []
        yield [path], options
    if records:
        yield records, None
