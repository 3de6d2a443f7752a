"""Retries failed chunks: the worker goes back to the stored offsets, and reads from there again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaException

from airflow_provider_kpipe.contract.clean_text import cleaned
from kpipe_engine.assignment.assignment import Assignment
from kpipe_engine.assignment.claiming import Claims
from kpipe_engine.assignment.events import PartitionEvents
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.errors import ChunkFailedError, PartitionHaltedError, may_be_fenced
from kpipe_engine.reading.range_reader import RangeReader
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing.chunk_writer import Delivery
from kpipe_engine.writing.producer_session import ProducerSession, TracingSession

log = logging.getLogger("kpipe")

CHUNK_TRIES = 5
# A new owner takes a tenth of it, from fencing its predecessor to storing its lease beside the offset.
LEASE_SECONDS = 1.0


class ChunkRetry:
    """Redoes failed chunks with care: one range at a time, and every record by itself, until what failed is behind."""

    def __init__(
        self,
        assignment: Assignment,
        source: RangeReader,
        delivery: Delivery,
        ownership: Claims,
        events: PartitionEvents,
        stop_signal: StopSignal,
    ) -> None:
        self._assignment, self._source, self._delivery = assignment, source, delivery
        self._ownership, self._events, self._stop_signal = ownership, events, stop_signal
        self._is_careful = False

    @property
    def next_states(self) -> list[RangeState]:
        """Ranges of the next chunk."""
        working = self._assignment.working
        return sorted(working, key=lambda state: not state.is_suspect)[:1] if self._is_careful else working

    def until_it_works(self, step: Callable[[], None], concerned: Callable[[], Sequence[RangeState]]) -> None:
        """Repeat a step, carefully and from the stored offsets, until it succeeds or concerns no range any more."""
        tries = 0
        while not tries or concerned():
            try:
                step()
                self._trust_again()
                return
            except ChunkFailedError as failure:
                # A try that found another faulty record made progress: the count starts over.
                tries = 1 if self._assignment.current.learn(failure.faults) else tries + 1
                self._give_up(failure, tries)
            except KafkaException as failure:
                tries += 1
                self._give_up(failure, tries)
                if may_be_fenced(failure.args[0]):
                    # Wait before we fence the producer that fenced us: it may be the rightful owner, about to store
                    # its lease.
                    self._stop_signal.wait(LEASE_SECONDS)
                    self.go_back()
            if concerned():
                self._start_over(TracingSession)

    def begin(self) -> None:
        """Start a chunk, with a new producer if the last one has lost a connection."""
        if self._delivery.lost_connection:
            log.info(
                "partition %d: a connection to the broker was lost: a new producer", self._assignment.current.partition
            )
            self._start_over(TracingSession if self._is_careful else ProducerSession)
        self._delivery.begin()

    def forget_chunk(self) -> None:
        """Discard the open chunk, without suspecting its records."""
        self._start_over(ProducerSession)

    def go_back(self) -> None:
        self.look(self._assignment.unsettled)

    def look(self, states: Sequence[RangeState]) -> list[RangeState]:
        """Go back to the stored offsets, and revoke each partition that another worker has taken on meanwhile."""
        self._source.forget()
        before = self._ownership.look(states)
        for state in states:
            if state.is_revoked:
                self._events.tell("revoked", state, reason=state.reason)
            elif state.is_unreadable:
                self._events.tell("faulted", state, reason=state.reason)
        return before

    def _give_up(self, failure: Exception, tries: int) -> None:
        state = self._assignment.current
        if tries == CHUNK_TRIES:
            raise PartitionHaltedError(
                f"the chunk from offset {state.stored} failed {CHUNK_TRIES} times, the last time with: {failure}; "
                "see to the broker, then run again"
            ) from failure
        log.warning("partition %d: try %d of %d failed: %s", state.partition, tries, CHUNK_TRIES, cleaned(str(failure)))
        for each in self._assignment:
            each.suspect()
        self._source.renew()

    def _trust_again(self) -> None:
        """Stop being careful once every record that the failed chunk had read is handled."""
        self._assignment.current.forget_faults()
        if self._is_careful and not any(state.is_suspect for state in self._assignment):
            self._start_over(ProducerSession)

    def _start_over(self, kind: type[ProducerSession]) -> None:
        self._is_careful = kind is TracingSession
        self._delivery.renew(kind)
        # After opening a producer, the worker looks again: a newer run may have come in between.
        self.go_back()
