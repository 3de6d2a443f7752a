"""Filling of a chunk: the records of one range after another are read, and handled."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.assignment.assignment import Assignment
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.assignment.suspects import Suspects
from kpipe_engine.errors import ChunkRejectedError, PartitionHaltedError
from kpipe_engine.processing.processor import RecordProcessor
from kpipe_engine.reading.chunk import Chunk
from kpipe_engine.reading.range_reader import RangeReader
from kpipe_engine.writing.producer_session import ProducerSession

RECORDS_PER_READ = 1_000


class NewChunk(Protocol):
    """Maker of chunks of so many records; the pipeline says how many seconds a chunk may take."""

    def __call__(self, records: int, *, reads_once: bool) -> Chunk: ...


class ChunkFiller:
    """Filler of chunks: range by range, it reads → processes → produces, and moves the range past handled records."""

    def __init__(
        self,
        assignment: Assignment,
        processors: Mapping[int, RecordProcessor],
        range_reader: RangeReader,
        session: ProducerSession,
        suspects: Suspects,
        new_chunk: NewChunk,
    ) -> None:
        self._assignment, self._processors = assignment, processors
        self._range_reader, self._session = range_reader, session
        self._suspects, self._new_chunk = suspects, new_chunk

    def seconds_until_due(self, states: Sequence[RangeState]) -> float:
        """Return how long to wait until a record of these ranges is due, if all wait for a retry."""
        return min((self._processors[state.partition].waits for state in states), default=0.0)

    def begin(self, states: Sequence[RangeState]) -> Chunk:
        """Begin a chunk of these ranges. After a death it is small, and nothing is fetched while it is handled."""
        is_alone = self._suspects.is_alone
        self._range_reader.fetch_alone(is_alone)
        return self._new_chunk(self._suspects.begin(states), reads_once=is_alone)

    def fill(self, chunk: Chunk, states: Sequence[RangeState]) -> None:
        """Go through the ranges until the chunk is full, or a record is rejected, which makes the chunk fail."""
        for state in states:
            if chunk.is_full or self._session.has_rejections:
                return
            self._assignment.turn_to(state)
            begun = time.monotonic()
            try:
                if not self._processors[state.partition].waits:
                    self._fill_from(state, chunk)
            except ChunkRejectedError:
                return
            except PartitionHaltedError as stop:
                self._assignment.stop(stop)
                # The end is stored at once. If no broker answers, the store fails for all ranges; otherwise each range
                # would find that out by itself, after a wait for records.
                return
            finally:
                state.spend(time.monotonic() - begun)

    def _fill_from(self, state: RangeState, chunk: Chunk) -> None:
        """Read and handle records until the chunk is full or the range has ended."""
        range_reader, session = self._range_reader, self._session
        if range_reader.range is not state.range:
            range_reader.start_at(state.range, state.handled, state.skips)
            self._assignment.start(state, range_reader.next_offset)
        try:
            # A record that the broker has rejected makes the whole chunk fail, sooner or later.
            while not (chunk.is_full or range_reader.finished or session.has_rejections or state.is_at_known_fault):
                most = state.room(chunk.room(RECORDS_PER_READ))
                if not chunk.handled:
                    self._suspects.reads(state.partition, range_reader.next_offset, most)
                messages = range_reader.read(most)
                handled = self._process(state, messages, chunk)
                range_reader.give_back(messages[handled:])
                session.poll()
                state.advance(range_reader.next_offset)
                chunk.add(handled, of=len(messages))
        finally:
            state.lose(range_reader.take_lost())

    def _process(self, state: RangeState, messages: Sequence[SourceMessage], chunk: Chunk) -> int:
        """Have the messages handled, and return how many were."""
        processor = self._processors[state.partition]
        if messages:
            self._suspects.leave()
            processor.open()
        faults = {**state.known_faults, **self._range_reader.unreadable}
        with self._suspects.handling(state.partition, messages, chunk.handled):
            return processor.process(messages, state.counts, faults, chunk.until_after(messages))
