"""A chain in which some segments are awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from airflow_provider_kpipe.record import Record
from airflow_provider_kpipe.segments import SegmentContext
from kpipe_engine.errors import NO_RECORDS_ERRORS, SegmentError
from kpipe_engine.faults.time_limit import NO_LIMIT, Limit
from kpipe_engine.processing.segment_chain import SegmentChain, as_records


class AsyncSegmentChain(SegmentChain):
    """Chain of all segments in one event loop: a plain segment among them should not block."""

    def __init__(
        self,
        paths: Sequence[str],
        context: SegmentContext,
        loop: asyncio.AbstractEventLoop,
        limit: Limit = NO_LIMIT,
    ) -> None:
        super().__init__(paths, context, limit)
        self._loop = loop

    async def process_awaiting(self, record: Record) -> Sequence[Record]:
        """Do as `process` does, and await the segments."""
        return await self._run_awaiting(record, 0)

    def _settle(self, result: Any) -> None:
        if inspect.isawaitable(result):
            self._loop.run_until_complete(_awaited(result))

    async def _run_awaiting(self, record: Record, first: int) -> Sequence[Record]:
        path = ""
        try:
            for index in range(first, len(self._steps)):
                path, process = self._steps[index]
                result = process(record)
                if inspect.isawaitable(result):
                    result = await result
                if type(result) is Record:
                    record = result
                elif result is None:
                    return ()
                else:
                    several = as_records(result)
                    return [last for each in several for last in await self._run_awaiting(each, index + 1)]
        except (SegmentError, *NO_RECORDS_ERRORS):
            raise
        except BaseException as error:
            raise SegmentError(path) from error
        return (record,)


async def _awaited(result: Any) -> None:
    await result


def has_async(segments: Iterable[Any]) -> bool:
    """Tell whether any segment is awaited."""
    return any(inspect.iscoroutinefunction(getattr(each, "process", each)) for each in segments)
