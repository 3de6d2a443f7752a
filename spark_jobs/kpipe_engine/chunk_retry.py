"""Retries of failed chunks: the worker goes back to the stored offsets, and reads from there again."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import KafkaException

from airflow_provider_kpipe.contract.clean_text import cleaned
from kpipe_engine.assignment.assignment import Assignment
from kpipe_engine.assignment.claiming import Claims
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.assignment.suspects import Suspects
from kpipe_engine.errors import ChunkFailedError, PartitionHaltedError, may_be_fenced
from kpipe_engine.reading.range_reader import RangeReader
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing.chunk_writer import ChunkWriter

log = logging.getLogger("kpipe")

CHUNK_TRIES = 5
# A new owner takes a tenth of it, from fencing its predecessor to storing its lease beside the offset.
LEASE_SECONDS = 1.0


class ChunkRetry:
    """Careful retries of failed chunks: one range at a time, and each record by itself, until what failed is behind."""

    def __init__(
        self,
        assignment: Assignment,
        range_reader: RangeReader,
        writer: ChunkWriter,
        claims: Claims,
        stop_signal: StopSignal,
        suspects: Suspects,
    ) -> None:
        self._assignment, self._range_reader, self._writer = assignment, range_reader, writer
        self._claims, self._stop_signal, self._suspects = claims, stop_signal, suspects
        self._tries, self._most_tries = 0, CHUNK_TRIES
        self._is_isolating = False

    @property
    def next_ranges(self) -> Sequence[RangeState]:
        """Ranges of the next chunk."""
        working = self._assignment.working
        if suspected := self._suspects.ranges(working):
            return suspected
        return sorted(working, key=lambda state: not state.is_suspect)[:1] if self._is_isolating else working

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Make the block a try: after a failure, the worker is back at the stored offsets, and can try again."""
        try:
            yield
            self._trust_again()
            self._tries = 0
        except (ChunkFailedError, KafkaException) as failure:
            self._go_on_after(self._suspects.explain(failure))

    def stop_trying(self) -> None:
        """Let the next failure be the last: the worker is no longer waited for."""
        self._most_tries = 1

    def begin(self) -> None:
        """Start a chunk, with a new producer if the last one has lost a connection."""
        if self._writer.lost_connection:
            log.info(
                "partition %d: a connection to the broker was lost: a new producer", self._assignment.current.partition
            )
            self._start_over(isolates=self._is_isolating)
        self._writer.begin()

    def discard_chunk(self) -> None:
        """Discard the open chunk, without suspecting its records, and open an empty one in its place.

        Records that were sent without a transaction stay.
        """
        self._start_over(isolates=False)
        self._writer.begin()

    def rewind(self, states: Sequence[RangeState]) -> list[RangeState]:
        """Go back to the stored offsets, and revoke each partition that another worker has taken on meanwhile.

        Return the ranges that an earlier run had in pieces.
        """
        self._range_reader.forget()
        cut = self._claims.read_stored(states)
        self._assignment.emit_lost(states)
        return cut

    def _go_on_after(self, failure: Exception) -> None:
        finds_fault = isinstance(failure, ChunkFailedError) and self._assignment.learn_of_current(failure.faults)
        # A try that found another faulty record made progress: the count starts over.
        self._tries = 1 if finds_fault else self._tries + 1
        self._stop_after_last_try(failure)
        if isinstance(failure, KafkaException) and may_be_fenced(failure.args[0]):
            # Wait before we fence the producer that fenced us: it may be the rightful owner, about to store its lease.
            self._stop_signal.wait(LEASE_SECONDS)
            self.rewind(self._assignment.unsettled)
        if self._assignment.unclaimed or self._assignment.unsettled:
            self._start_over(isolates=True)

    def _stop_after_last_try(self, failure: Exception) -> None:
        state = self._assignment.current
        if self._tries >= self._most_tries:
            raise PartitionHaltedError(
                f"the chunk from offset {state.stored} failed {self._tries} times, the last time with: {failure}; "
                "see to the broker, then run again"
            ) from failure
        log.warning(
            "partition %d: try %d of %d failed: %s", state.partition, self._tries, CHUNK_TRIES, cleaned(str(failure))
        )
        self._assignment.suspect()
        self._range_reader.renew()

    def _trust_again(self) -> None:
        """Stop isolating records once every record that the failed chunk had read is handled."""
        self._assignment.forget_faults_of_current()
        if self._is_isolating and not self._assignment.has_suspects:
            self._start_over(isolates=False)

    def _start_over(self, *, isolates: bool) -> None:
        self._is_isolating = isolates
        # After opening a producer, the worker looks again: a newer run may have come in between.
        self._writer.renew(isolates=isolates)
        self.rewind(self._assignment.unsettled)
