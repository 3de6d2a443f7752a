"""Records at fault if a worker dies over them, or if its chunk fails because they take too long."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.assignment.careful_start import CarefulStart
from kpipe_engine.assignment.precautions import Suspicion
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.assignment.worker_position import At, Reading, WorkerPosition
from kpipe_engine.errors import ChunkFailedError, OutlivedError


class Suspects:
    """Records in hand, noted for the supervisor; chunks stay small until suspected records are handled.

    A segment that takes longer than the transaction undoes all that the chunk wrote before. From then on, each record
    that may be the cause is alone in its chunk, whose transaction begins with the first write.
    """

    def __init__(self, pipeline: str, longest: float, position: WorkerPosition, careful_start: CarefulStart) -> None:
        """Begin without a suspect.

        :param longest: seconds after which the broker aborts a chunk
        """
        self._pipeline, self._longest = pipeline, longest
        self._position, self._careful_start = position, careful_start
        self.slowest_seconds = 0.0
        self._slowest: At | None = None

    @property
    def is_alone(self) -> bool:
        """Tell whether nothing may be fetched while records are handled: a worker that dies has died over them then."""
        return self._careful_start.is_alone

    def ranges(self, working: Sequence[RangeState]) -> Sequence[RangeState]:
        """Return the range with suspected records until they are handled, and none otherwise."""
        return self._careful_start.states(working)

    def begin(self, states: Sequence[RangeState]) -> int:
        """Begin a chunk of these ranges, and return how many records it may have."""
        self.slowest_seconds, self._slowest = 0.0, None
        self._position.note_ease(self._careful_start.is_at_ease)
        return self._careful_start.records(states)

    def reads(self, partition: int, next_offset: int, most: int) -> None:
        """Note that the client is asked for records, and none is in hand."""
        self._position.read(Reading(partition, next_offset, most))

    def leave(self) -> None:
        """Note that no record is in hand: an error in the opening of segments is the fault of none."""
        self._position.leave()

    @contextmanager
    def handling(self, partition: int, messages: Sequence[SourceMessage], before: int) -> Iterator[None]:
        """Note these records while the block handles them, and time the block.

        :param before: number of records that the chunk has handled already
        """
        if messages:
            first, after, read = messages[0].offset(), messages[-1].offset() + 1, len(messages)
            self._position.enter(At(partition, first, after, read, before + read))
        begun = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - begun
            if seconds > self.slowest_seconds:
                self.slowest_seconds, self._slowest = seconds, self._position.at

    def end(self) -> None:
        """Note that the chunk is stored, and let the next one be larger."""
        # No record of this chunk is to blame if the worker ends from here on, such as in the client's fetch.
        self._position.leave()
        self._position.note_stored()
        self._careful_start.relax()

    def explain(self, failure: Exception) -> Exception:
        """Return the failure of a chunk, or a fault of the only record that may be its cause."""
        at = self._position.at
        self._position.leave()
        if at is not None and at.in_chunk == 1 and self.slowest_seconds > self._longest:
            fault = Fault.of(OutlivedError(self.slowest_seconds, self._longest, failure), self._pipeline, "segment")
            found = ChunkFailedError(fault.message, {at.first: fault})
            found.__cause__ = failure
            return found
        slowest = self._slowest
        if slowest is not None and self.slowest_seconds > self._longest / 2:
            self._careful_start.suspect(Suspicion(slowest.partition, slowest.first, slowest.after, 1))
        return failure
