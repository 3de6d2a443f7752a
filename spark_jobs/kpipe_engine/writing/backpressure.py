"""Admission of records, except while the output of the last ones waits too long to be written."""

from __future__ import annotations

import time
from collections.abc import Callable

from kpipe_engine.assignment.assignment import Assignment
from kpipe_engine.errors import ChunkFailedError, NoAnswerError
from kpipe_engine.reading.range_reader import RangeReader
from kpipe_engine.stop_signal import StopSignal

# A full queue empties in less than this if the broker takes its messages.
PATIENCE_SECONDS = 1.0
# A broker that has taken nothing for this long is given up, and sooner if there is a reason to yield the partition.
STANDSTILL_SECONDS = 120.0
STANDSTILL_WHEN_STOPPED_SECONDS = 10.0
# Interval of looks at the cluster's state while the broker takes nothing.
LOOK_SECONDS = 15.0


class Admission:
    """Switch that pauses reading once output has waited too long, and resumes it when the output has drained.

    librdkafka 2.16 may stop sending to a partition after its leader was away for a moment (its issue 5430). If the
    cluster is well but takes nothing from a producer, another producer has to take over.
    """

    def __init__(
        self,
        range_reader: RangeReader,
        assignment: Assignment,
        stop_signal: StopSignal,
        is_well: Callable[[], bool],
    ) -> None:
        self._range_reader, self._assignment = range_reader, assignment
        self._stop_signal, self._is_well = stop_signal, is_well
        self._waits_since: float | None = None
        self._left, self._moved_at, self._looked_at = 0, 0.0, 0.0
        self._was_well = False
        self.paused = False

    def output_waits(self, left: int) -> None:
        """Note, as long as output waits, how many messages are left; raise if the broker takes none for too long."""
        now = time.monotonic()
        if self._waits_since is None:
            self._waits_since = now
            self._note_move(now)
        elif not self.paused and now - self._waits_since > PATIENCE_SECONDS:
            self.paused = True
            self._range_reader.pause()
            self._assignment.emit("paused")
        if left != self._left:
            self._left = left
            self._note_move(now)
        longest = STANDSTILL_WHEN_STOPPED_SECONDS if self._stop_signal.reason else STANDSTILL_SECONDS
        if now - self._moved_at > longest:
            raise NoAnswerError(f"the broker has taken nothing for {longest:g} s")
        if now - self._looked_at > LOOK_SECONDS:
            self._look()

    def output_is_throttled(self, seconds: float) -> None:
        """Note that the broker has acknowledged something, and takes no more for this long: the quota is used up."""
        self._note_move(time.monotonic() + seconds)

    def output_flows(self) -> None:
        self._waits_since = None
        if self.paused:
            self.paused = False
            self._range_reader.resume()
            self._assignment.emit("resumed")

    def _look(self) -> None:
        """Give the chunk up if the cluster is well for the second time: at the first, it may just have come back."""
        was_well, self._was_well = self._was_well, self._is_well()
        self._looked_at = time.monotonic()
        if was_well and self._was_well:
            seconds = self._looked_at - self._moved_at
            raise ChunkFailedError(f"the cluster is well, and has taken nothing from this producer for {seconds:.0f} s")

    def _note_move(self, at: float) -> None:
        self._moved_at = self._looked_at = at
        self._was_well = False
