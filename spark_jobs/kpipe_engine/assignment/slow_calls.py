"""Finds the records that most likely made a chunk fail by taking longer than its transaction may."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from airflow_provider_kpipe.contract.faults.fault import Fault
from kpipe_engine.assignment.careful_start import CarefulStart
from kpipe_engine.assignment.precautions import Suspicion
from kpipe_engine.assignment.worker_position import At, WorkerPosition
from kpipe_engine.errors import ChunkFailedError, OutlivedError


class SlowCalls:
    """Times the calls that handle records, and keeps the slowest of a chunk.

    A segment that takes longer than the transaction undoes all that the chunk wrote before. From then on, each record
    that may be the cause is alone in its chunk, whose transaction begins with the first write.
    """

    def __init__(self, pipeline: str, longest: float, position: WorkerPosition, careful_start: CarefulStart) -> None:
        """
        :param longest: seconds after which the broker aborts a chunk
        """
        self._pipeline, self._longest = pipeline, longest
        self._position, self._careful_start = position, careful_start
        self.begin()

    def begin(self) -> None:
        """Begin a chunk."""
        self.seconds = 0.0
        self._slowest: At | None = None

    @contextmanager
    def timed(self) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - begun
            if seconds > self.seconds:
                self.seconds, self._slowest = seconds, self._position.at

    def explain(self, failure: Exception) -> Exception:
        """Return the failure of a chunk, or a fault of the only record that may be its cause."""
        at = self._position.at
        self._position.leave()
        if at is not None and at.in_chunk == 1 and self.seconds > self._longest:
            fault = Fault.of(OutlivedError(self.seconds, self._longest, failure), self._pipeline, "segment")
            found = ChunkFailedError(fault.message, {at.first: fault})
            found.__cause__ = failure
            return found
        slowest = self._slowest
        if slowest is not None and self.seconds > self._longest / 2:
            self._careful_start.suspect(Suspicion(slowest.partition, slowest.first, slowest.after, 1))
        return failure
