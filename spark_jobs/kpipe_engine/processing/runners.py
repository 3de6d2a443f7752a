"""Runners of several records of one partition at once: in threads, or in the coroutines of an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import Origin, Record, SourceMessage
from airflow_provider_kpipe.segments import SegmentContext
from kpipe_engine.errors import PartitionHaltedError, RetryLaterError, SegmentError
from kpipe_engine.faults.time_limit import NO_LIMIT, Limit
from kpipe_engine.processing.async_segment_chain import AsyncSegmentChain
from kpipe_engine.processing.retries import Retries
from kpipe_engine.processing.segment_chain import SegmentChain
from kpipe_engine.stop_signal import StopSignal

LOOK_SECONDS = 0.1

_counters: ContextVar[dict[str, int]] = ContextVar("counters")


@dataclass(slots=True)
class Outcome:
    """The outcome of one record: outputs, a fault, the stop of its partition, or nothing yet."""

    records: Sequence[Record] = ()
    fault: Fault | None = None
    stop: PartitionHaltedError | None = None
    is_due: bool = True
    counts: Counts = field(default_factory=Counts)
    """To be added to the counts of the chunk."""


class ConcurrentContext(SegmentContext):
    """Context with counts for each record separately: some of the records in progress will not be part of the chunk."""

    __slots__ = ()

    def count(self, name: str, by: int = 1) -> None:
        name = self._checked(name, by)
        counters = _counters.get(self.counters)
        counters[name] = counters.get(name, 0) + by


class SegmentRunner(Protocol):
    """Runner of several records at once, which returns the outcomes in the order of the messages."""

    def open(self) -> None: ...
    def work(self, messages: Sequence[SourceMessage], until: float) -> list[Outcome]: ...
    def count_into(self, counters: dict[str, int]) -> None: ...
    def close(self) -> None: ...


class ThreadRunner:
    """Runner in threads, for segments that wait, or that release Python's global lock while they work."""

    def __init__(
        self, segments: SegmentChain, retries: Retries, origin: Origin, stop_signal: StopSignal, at_once: int
    ) -> None:
        self._segments, self._retries, self._origin, self._stop_signal = segments, retries, origin, stop_signal
        self._threads = ThreadPoolExecutor(at_once, "kpipe-record")

    def open(self) -> None:
        self._segments.open()

    def work(self, messages: Sequence[SourceMessage], until: float) -> list[Outcome]:
        return list(self._threads.map(partial(self._process, until), messages))

    def count_into(self, counters: dict[str, int]) -> None:
        self._segments.count_into(counters)

    def close(self) -> None:
        self._threads.shutdown()
        self._segments.close()

    def _process(self, until: float, message: SourceMessage) -> Outcome:
        outcome = Outcome()
        while True:
            # The counts of a failed try are kept, as they are when records go one by one.
            _counters.set(outcome.counts.named)
            if self._stop_signal.is_set or time.monotonic() > until:
                outcome.is_due = False
                return outcome
            try:
                outcome.records = self._segments.process(Record(message, self._origin))
                _forget_tries(self._retries, message)
                return outcome
            except SegmentError as error:
                delay = _delay(outcome, self._retries, message, error, until)
            if delay is None:
                return outcome
            self._stop_signal.wait(delay)


class EventLoopRunner:
    """Runner in an event loop, for segments that are awaited."""

    def __init__(
        self,
        paths: Sequence[str],
        context: SegmentContext,
        retries: Retries,
        origin: Origin,
        stop_signal: StopSignal,
        at_once: int,
        limit: Limit = NO_LIMIT,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._segments = AsyncSegmentChain(paths, context, self._loop, limit)
        self._retries, self._origin, self._stop_signal = retries, origin, stop_signal
        self._room = asyncio.Semaphore(at_once)

    def open(self) -> None:
        self._segments.open()

    def work(self, messages: Sequence[SourceMessage], until: float) -> list[Outcome]:
        return self._loop.run_until_complete(self._all(messages, until))

    def count_into(self, counters: dict[str, int]) -> None:
        self._segments.count_into(counters)

    def close(self) -> None:
        self._segments.close()
        self._loop.close()

    async def _all(self, messages: Sequence[SourceMessage], until: float) -> list[Outcome]:
        return await asyncio.gather(*(self._process(until, message) for message in messages))

    async def _process(self, until: float, message: SourceMessage) -> Outcome:
        outcome = Outcome()
        _counters.set(outcome.counts.named)
        async with self._room:
            while True:
                if self._stop_signal.is_set or time.monotonic() > until:
                    outcome.is_due = False
                    return outcome
                try:
                    outcome.records = await self._segments.process_awaiting(Record(message, self._origin))
                    _forget_tries(self._retries, message)
                    return outcome
                except SegmentError as error:
                    delay = _delay(outcome, self._retries, message, error, until)
                if delay is None:
                    return outcome
                await self._wait(delay)

    async def _wait(self, seconds: float) -> None:
        """Sleep, at most until there is a reason to yield: no event wakes the loop then, so it polls."""
        until = time.monotonic() + seconds
        while not self._stop_signal.reason and (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, LOOK_SECONDS))


def _forget_tries(retries: Retries, message: SourceMessage) -> None:
    """Drop the tries of a record that has passed: if its chunk fails, it is processed again with all its tries."""
    if retries.tried:
        retries.forget(message.offset())


def _delay(
    outcome: Outcome, retries: Retries, message: SourceMessage, error: SegmentError, until: float
) -> float | None:
    """Return the seconds before the next try; None if there is none now, with the reason in the outcome."""
    try:
        found = retries.fault_or_delay(message.offset(), error, outcome.counts, until)
    except RetryLaterError:
        outcome.is_due = False
    except PartitionHaltedError as stop:
        outcome.stop = stop
    else:
        if not isinstance(found, Fault):
            return found
        outcome.fault = found
    return None
