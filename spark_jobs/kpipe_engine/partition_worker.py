"""Worker on the ranges of one writer, each from its stored offset to its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from confluent_kafka import KafkaException

from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from kpipe_engine.assignment.assignment import Assignment
from kpipe_engine.assignment.claiming import Claims
from kpipe_engine.assignment.last_words import LastWords
from kpipe_engine.assignment.precautions import Precautions
from kpipe_engine.assignment.progress_store import ProgressStore
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.assignment.run_monitor import RunMonitor
from kpipe_engine.assignment.suspects import Suspects
from kpipe_engine.chunk_filler import ChunkFiller
from kpipe_engine.chunk_retry import ChunkRetry
from kpipe_engine.errors import BudgetExceededError, PartitionHaltedError, PipelineHaltedError, is_silence
from kpipe_engine.reading.planned_topic import PlannedTopic
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing.chunk_writer import ChunkWriter

LONGEST_REST_SECONDS = 5.0


class Closing(Protocol):
    """A part that holds something until it is closed."""

    def close(self) -> None: ...


class PartitionWorker:
    """Worker on the ranges of one writer, a chunk at a time.

    A chunk is: read → process → produce → await the acknowledgements → store the offsets. An offset is stored only when
    every record before it is terminal. If a chunk fails, `ChunkRetry` goes back to the stored offsets: the worker never
    has to guess the outcome of the records in between.
    """

    def __init__(
        self,
        *,
        assignment: Assignment,
        claims: Claims,
        progress_store: ProgressStore,
        filler: ChunkFiller,
        writer: ChunkWriter,
        retry: ChunkRetry,
        suspects: Suspects,
        topic: PlannedTopic,
        monitor: RunMonitor,
        stop_signal: StopSignal,
        precautions: Precautions,
        last_words: LastWords,
        drains: bool,
        closing: Sequence[Closing],
    ) -> None:
        self.assignment, self.claims, self.progress_store = assignment, claims, progress_store
        self.filler, self.writer, self.retry, self.suspects = filler, writer, retry, suspects
        self.topic, self.monitor, self.stop_signal = topic, monitor, stop_signal
        self.precautions, self.last_words, self.drains = precautions, last_words, drains
        self.closing = closing
        self.met_silence = False
        """Tells whether the worker has ended because no broker answered."""

    def run(self) -> list[PartitionProgress]:
        """Work on the ranges, and close."""
        try:
            return self.work()
        finally:
            self.close()

    def work(self) -> list[PartitionProgress]:
        """Take each range to its end, and return the progress. Only a crash raises."""
        try:
            self.open()
            self.run_chunks()
        except (PartitionHaltedError, KafkaException) as stop:
            self.met_silence = is_silence(stop)
            self.last_words.say(self.assignment, stop)
        return self.assignment.progress

    def open(self) -> None:
        """Fence the previous writer, and claim the ranges."""
        self.writer.open()
        while self.assignment.unclaimed:
            with self.retry.attempt():
                self.claim()

    def abandon(self) -> None:
        """Give up at the next failure: the worker is no longer waited for."""
        self.retry.stop_trying()

    def run_chunks(self) -> None:
        while self.assignment.unsettled:
            with self.retry.attempt():
                self.run_chunk()

    def claim(self) -> None:
        """Put our lease beside each stored offset, in four steps.

        1. Read the stored progress: a range that a newer run owns is revoked.
        2. Store our lease, beside complete ranges as well: the workers of a partition's other pieces rely on it.
        3. If an earlier run had a partition in pieces, fence their writers, and adopt the offsets that they completed.
        4. Store those with our lease.
        """
        # This includes complete ranges: another run may have completed them.
        cut = self.retry.rewind(self.assignment.not_revoked)
        self.assignment.learn(self.precautions.culprits)
        self.store_lease(self.assignment.ours)
        if cut:
            self.claims.adopt_pieces(cut)
            self.store_lease([state for state in cut if state.is_ours])
        self.assignment.claim()

    def store_lease(self, states: Sequence[RangeState]) -> None:
        self.writer.begin()
        self.writer.store(self.progress_store.entries(states))

    def run_chunk(self) -> None:
        """Run one chunk, in five steps.

        1. Wait until a record is due, and begin.
        2. Read, process and produce, range by range, until the chunk is full.
        3. Yield the ranges if there is a reason to.
        4. Await the broker's acknowledgement of every record.
        5. Store the offsets, and the ends that ranges have come to.
        """
        self.assignment.stop_some(self.precautions.stops)
        self.stop_signal.wait(min(self.filler.seconds_until_due(self.retry.next_ranges), LONGEST_REST_SECONDS))
        self.retry.begin()
        states = self.retry.next_ranges
        chunk = self.filler.begin(states)
        try:
            self.monitor.look()
            self.filler.fill(chunk, states)
            self.monitor.check()
        except PartitionHaltedError as stop:
            self.assignment.stop_all(stop)
        except BudgetExceededError as excess:
            self.retry.discard_chunk()
            self.assignment.stop_all(PipelineHaltedError(str(excess)))
        if reason := self.stop_signal.reason:
            self.yield_all(reason)
        self.store()
        self.suspects.end()

    def yield_all(self, reason: str) -> None:
        """Give the ranges up; keep the records in flight if the pipeline drains, else discard them."""
        if not self.drains:
            self.retry.discard_chunk()
        self.assignment.yield_all(reason)

    def store(self) -> None:
        """Await the acknowledgements, then store offsets and ends: in one transaction, or in one commit."""
        states = self.assignment.needing_store
        if states:
            self.topic.check()
        self.writer.store(self.progress_store.entries(states))
        self.assignment.mark_stored(states)

    def close(self) -> None:
        for part in self.closing:
            part.close()
