"""Works on the ranges of one writer, each from its stored offset to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from confluent_kafka import KafkaException

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.assignment.assignment import Assignment
from kpipe_engine.assignment.care import Precautions, Suspicion
from kpipe_engine.assignment.caution import CarefulStart
from kpipe_engine.assignment.claiming import Claims
from kpipe_engine.assignment.events import PartitionEvents
from kpipe_engine.assignment.last_words import say_why
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.assignment.run_monitor import RunMonitor
from kpipe_engine.assignment.whereabouts import At, Reading, WorkerPosition
from kpipe_engine.chunk_retry import ChunkRetry
from kpipe_engine.errors import (
    BudgetExceededError,
    ChunkFailedError,
    ChunkRejectedError,
    KnownFaults,
    OutlivedError,
    PartitionHaltedError,
    PipelineHaltedError,
    is_silence,
)
from kpipe_engine.processing.processor import RecordProcessor
from kpipe_engine.reading.chunk import Chunk
from kpipe_engine.reading.planned_topic import PlannedTopic
from kpipe_engine.reading.range_reader import RangeReader
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing.chunk_writer import Delivery

READ_RECORDS = 1_000
LONGEST_REST_SECONDS = 5.0


class PartitionWorker:
    """Reads, handles, awaits and stores, a chunk at a time.

    An offset is stored only when every record before it is terminal. After any error in a chunk, the worker goes back
    to the stored offset: it never has to guess the outcome of the records in between.
    """

    def __init__(
        self,
        *,
        pipeline: KafkaPipeline,
        stop_signal: StopSignal,
        assignment: Assignment,
        processors: Mapping[int, RecordProcessor],
        source: RangeReader,
        topic: PlannedTopic,
        ownership: Claims,
        delivery: Delivery,
        watch: RunMonitor,
        events: PartitionEvents,
        recovery: ChunkRetry,
        care: Precautions,
        caution: CarefulStart,
        whereabouts: WorkerPosition,
        explain: Callable[[Exception], str],
        successor: Callable[..., PartitionWorker],
    ) -> None:
        self.pipeline, self.stop_signal = pipeline, stop_signal
        self.assignment, self.processors = assignment, processors
        self.source, self.topic = source, topic
        self.ownership, self.delivery = ownership, delivery
        self.watch, self.events = watch, events
        self.recovery = recovery
        self.care, self.caution, self.whereabouts = care, caution, whereabouts
        self.explain, self.successor = explain, successor
        self.call_seconds, self.slowest = 0.0, cast("At | None", None)
        self.met_silence = False
        """Tells whether the worker has ended because no broker answered."""

    def run(self) -> list[PartitionProgress]:
        """Work on the ranges, and close."""
        try:
            return self.work()
        finally:
            self.close()

    def work(self) -> list[PartitionProgress]:
        """Take the partitions on, resume at the stored offsets, and return the progress; only a crash raises."""
        try:
            self.open()
            self.run_chunks()
        except (PartitionHaltedError, KafkaException) as stop:
            self.met_silence = is_silence(stop)
            self.stop_short(self.explain(stop))
        return [state.progress for state in self.assignment]

    def stop_short(self, reason: str) -> None:
        """End the partitions that are not settled, and have a successor store the reason.

        The outcome of the open chunk is unknown: the successor goes back to the stored offsets, and stores the reason
        for each partition that is still ours.
        """
        states = self.assignment.unsettled
        for state in states:
            state.end("stopped", reason)
            self.events.tell("faulted", state, reason=state.reason)
        if states:
            care = Precautions(stops={state.partition: reason for state in states})
            say_why(self.successor([state.range for state in states], StopSignal(), care=care))

    def open(self) -> None:
        """Fence the previous writer, and take the partitions on."""
        self.delivery.open()
        # A partition that is complete by now needs our lease as well: the workers of its other pieces rely on it.
        self.recovery.until_it_works(self.take_on, lambda: self.assignment.ours)

    def take_on(self) -> None:
        """Read the stored progress, and store our lease beside it."""
        # This includes complete partitions: another run may have completed them.
        before = self.recovery.look(self.assignment.not_revoked)
        ours = self.assignment.ours
        for state in ours:
            state.learn(self.care.culprits.get(state.partition, {}))
            state.forget_faults()
        self.delivery.begin()
        self.delivery.store(self.ownership.positions(ours))
        if before:
            self.ownership.look_again(before)
            self.delivery.begin()
            self.delivery.store(self.ownership.positions([state for state in before if state.is_ours]))
        for state in self.assignment.ours:
            self.events.tell("assigned" if state.works else "completed", state)

    def run_chunks(self) -> None:
        while self.assignment.unsettled:
            self.recovery.until_it_works(self.run_timely_chunk, lambda: self.assignment.unsettled)

    def run_timely_chunk(self) -> None:
        """Run a chunk, and suspect its slowest records if it fails late.

        A segment that takes longer than the transaction undoes all that the chunk wrote before. From then on, each
        record that may be the cause is alone in its chunk, whose transaction begins with the first write.
        """
        try:
            self.run_chunk()
        except (ChunkFailedError, KafkaException) as failure:
            at, slowest, longest = self.whereabouts.at, self.slowest, self.delivery.longest
            self.whereabouts.leave()
            if at is not None and at.in_chunk == 1 and self.call_seconds > longest:
                fault = Fault.of(OutlivedError(self.call_seconds, longest, failure), self.pipeline.name, "segment")
                raise ChunkFailedError(fault.message, {at.first: fault}) from failure
            if slowest is not None and self.call_seconds > longest / 2:
                self.caution.suspect(Suspicion(slowest.partition, slowest.first, slowest.after, 1))
            raise

    def run_chunk(self) -> None:
        """Run one chunk: admit → segments → produce → acknowledge → store."""
        self.halt_states()
        # While all ranges wait for a retry, the worker looks at the run now and then.
        waits = min((self.processor_of(state).waits for state in self.next_states), default=0.0)
        self.stop_signal.wait(min(waits, LONGEST_REST_SECONDS))
        self.recovery.begin()
        self.call_seconds, self.slowest = 0.0, None
        states = self.next_states
        self.whereabouts.note_ease(self.caution.is_at_ease)
        self.source.fetch_alone(self.caution.is_alone)
        records, seconds = self.caution.records(states), self.pipeline.chunk_seconds
        try:
            self.watch.look()
            self.fill(Chunk(records, seconds, self.stop_signal, self.caution.is_alone), states)
            self.watch.check()
        except PartitionHaltedError as stop:
            self.assignment.stop_all(stop)
        except BudgetExceededError as excess:
            self.give_chunk_up()
            self.assignment.stop_all(PipelineHaltedError(str(excess)))
        if reason := self.stop_signal.reason:
            self.yield_all(reason)
        self.store()
        # No record of this chunk is to blame if the worker ends from here on, such as in the client's fetch.
        self.whereabouts.leave()
        self.whereabouts.note_stored()
        self.caution.relax()

    def processor_of(self, state: RangeState) -> RecordProcessor:
        return self.processors[state.partition]

    @property
    def next_states(self) -> Sequence[RangeState]:
        """Ranges of the next chunk."""
        return self.caution.states(self.assignment.working) or self.recovery.next_states

    def halt_states(self) -> None:
        """End the ranges that `care` stops, because workers died over them in a way that a retry cannot fix."""
        for state in self.assignment.working:
            if reason := self.care.stops.get(state.partition):
                state.end("stopped", reason)
                self.events.tell("faulted", state, reason=reason)

    def fill(self, chunk: Chunk, states: Sequence[RangeState]) -> None:
        for state in states:
            if chunk.is_full or self.delivery.acks.refused:
                return
            self.assignment.current, begun = state, time.monotonic()
            try:
                if not self.processor_of(state).waits:
                    self.admit(state, chunk)
            except ChunkRejectedError:
                return
            except PartitionHaltedError as stop:
                self.assignment.stop(stop)
                # The end is stored at once. If no broker answers, the store fails for all ranges; otherwise each range
                # would find that out by itself, after a wait for records.
                return
            finally:
                state.spend(time.monotonic() - begun)

    def admit(self, state: RangeState, chunk: Chunk) -> None:
        """Read and handle records until the chunk is full or the range has ended."""
        if self.source.range is not state.range:
            self.source.start_at(state.range, state.handled, state.skips)
            state.advance(self.source.next_offset)
            self.events.tell("started", state)
        try:
            # A record that the broker has rejected makes the whole chunk fail, sooner or later.
            while not (chunk.is_full or self.source.finished or self.delivery.acks.refused or state.is_at_known_fault):
                most = state.room(chunk.room(READ_RECORDS))
                if not chunk.handled:
                    self.whereabouts.read(Reading(state.partition, self.source.next_offset, most))
                messages = self.source.read(most)
                if messages:
                    self.enter(state, messages, chunk)
                faults = {**state.known_faults, **self.source.unreadable}
                handled = self.call(state, messages, faults, chunk)
                self.source.give_back(messages[handled:])
                self.delivery.acks.serve()
                state.advance(self.source.next_offset)
                chunk.add(handled, of=len(messages))
        finally:
            state.lose(self.source.take_lost())

    def call(self, state: RangeState, messages: Sequence[SourceMessage], faults: KnownFaults, chunk: Chunk) -> int:
        """Have the messages handled, and note the slowest call: more may be read before the chunk fails."""
        begun = time.monotonic()
        try:
            return self.processor_of(state).process(messages, state.counts, faults, chunk.until_after(messages))
        finally:
            seconds = time.monotonic() - begun
            if seconds > self.call_seconds:
                self.call_seconds, self.slowest = seconds, self.whereabouts.at

    def enter(self, state: RangeState, messages: Sequence[SourceMessage], chunk: Chunk) -> None:
        """Open the segments, then note the records that are handled next: an error in opening is the fault of none."""
        self.whereabouts.leave()
        self.processor_of(state).open()
        read, last = len(messages), messages[-1].offset()
        self.whereabouts.enter(At(state.partition, messages[0].offset(), last + 1, read, chunk.handled + read))

    def store(self) -> None:
        """Await the acknowledgement of the chunk, and store its offsets."""
        told = [state for state in self.assignment if state.has_news]
        if told:
            self.topic.check()
        self.delivery.store(self.ownership.positions(told))
        for state in told:
            state.note_stored()
            self.events.tell_stored(state, self.pipeline.partitions.drains)

    def yield_all(self, reason: str) -> None:
        """Give the partitions up; keep the records in flight if the pipeline drains, else discard them."""
        drains = self.pipeline.partitions.drains
        if not drains:
            self.give_chunk_up()
        for state in self.assignment.working:
            if state.handled < state.range.end:
                if drains:
                    self.events.tell("draining", state, reason=reason)
                state.end("yielded", reason)

    def give_chunk_up(self) -> None:
        """Discard the open chunk, except records sent without a transaction, and open an empty one in its place."""
        self.recovery.forget_chunk()
        self.delivery.begin()

    def close(self) -> None:
        for processor in self.processors.values():
            processor.close()
        self.delivery.close()
        self.source.close()
        self.topic.close()
        self.watch.close()
        self.events.close()
