"""Builds a partition worker from a job: each part is made once, after the parts that it needs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, get_args

from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.policies import FaultAction
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import Origin
from airflow_provider_kpipe.segments import SegmentContext
from kpipe_engine.assignment.assignment import Assignment
from kpipe_engine.assignment.careful_start import CarefulStart
from kpipe_engine.assignment.claiming import Claims
from kpipe_engine.assignment.events import LoggedEvents, PartitionEvents, PublishedEvents, without_events
from kpipe_engine.assignment.last_words import LastWords
from kpipe_engine.assignment.other_workers import OtherWorkers
from kpipe_engine.assignment.precautions import Precautions
from kpipe_engine.assignment.progress_store import ProgressStore
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.assignment.run_monitor import NoMonitor, RunMonitor, SharedMonitor
from kpipe_engine.assignment.suspects import Suspects
from kpipe_engine.assignment.worker_position import WorkerPosition
from kpipe_engine.batches.processor import BatchProcessor
from kpipe_engine.batches.stages import StageChain, has_batches
from kpipe_engine.chunk_filler import ChunkFiller
from kpipe_engine.chunk_retry import ChunkRetry
from kpipe_engine.client_settings import Settings, producer_settings
from kpipe_engine.errors import PartitionHaltedError
from kpipe_engine.faults.dead_letter_topic import DeadLetters, DeadLetterTopic, NoDeadLetters
from kpipe_engine.faults.fault_handler import FaultHandler, UsersChoice
from kpipe_engine.faults.time_limit import NO_LIMIT, Limit, TimeLimit
from kpipe_engine.partition_worker import PartitionWorker
from kpipe_engine.processing.async_segment_chain import has_async
from kpipe_engine.processing.concurrent import ConcurrentProcessor
from kpipe_engine.processing.copying import CopyProcessor
from kpipe_engine.processing.processor import RecordProcessor
from kpipe_engine.processing.retries import Retries
from kpipe_engine.processing.runners import ConcurrentContext, EventLoopRunner, SegmentRunner, ThreadRunner
from kpipe_engine.processing.segment_chain import SegmentChain, find_segment
from kpipe_engine.processing.sequential import SequentialProcessor
from kpipe_engine.processing.stopping import StoppedProcessor
from kpipe_engine.reading.chunk import Chunk
from kpipe_engine.reading.details_group import DetailsGroup
from kpipe_engine.reading.planned_topic import PlannedTopic
from kpipe_engine.reading.range_reader import RangeReader
from kpipe_engine.reading.shared_consumer import SharedConsumer
from kpipe_engine.redrive.ledger import Ledger
from kpipe_engine.redrive.original_record import back_to_source
from kpipe_engine.redrive.processor import RedriveProcessor
from kpipe_engine.redrive.refaulted import RefaultedDeadLetters
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing.backpressure import Admission
from kpipe_engine.writing.chunk_writer import (
    AtLeastOnceWriter,
    ChunkWriter,
    TransactionalWriter,
    transactional_settings,
)
from kpipe_engine.writing.destination import Destination
from kpipe_engine.writing.fencing import fence_writers
from kpipe_engine.writing.missing_replicas import is_well, reason_with_replicas
from kpipe_engine.writing.producer_session import ProducerSession, TransactionalSession


def build_worker(
    job: Job,
    settings: KafkaSettings,
    ranges: Sequence[PartitionRange],
    stop_signal: StopSignal,
    task: int = 0,
    *,
    precautions: Precautions | None = None,
    position: WorkerPosition | None = None,
) -> PartitionWorker:
    """Build the worker of these ranges, which share one writer.

    :param task: the number of the Spark task, which is part of the worker's lease
    :param precautions: those that the worker takes after one that died
    """
    pipeline, plan, slot = job.pipeline, job.plan, ranges[0].slot
    precautions, position = precautions or Precautions(), position or WorkerPosition()
    drains = pipeline.partitions.drains
    pieces = {each.partition: len(each.pieces) for each in plan.ranges}
    states = [RangeState(each, pieces[each.partition]) for each in ranges]
    events = choose_events(job, settings.destination)
    assignment = Assignment(states, events, drains=drains)
    shared_consumer = SharedConsumer(settings.source, plan, slot)
    range_reader = RangeReader(shared_consumer, pipeline.source, plan.topic)
    lease = job.lease(task)
    progress_store = ProgressStore(plan, lease, slot, shared_consumer, settings.source)
    fence = partial(fence_writers, settings.destination) if pipeline.delivery == "exactly_once" else None
    claims = Claims(job, lease, slot, progress_store, settings.source, fence)
    takes_records = partial(is_well, settings.destination, job.written_topics)
    admission = Admission(range_reader, assignment, stop_signal, takes_records)
    session, writer = choose_writer(job, settings, ranges[0], shared_consumer, claims, admission)
    topic = PlannedTopic(settings.source, plan)
    monitor = choose_monitor(job, progress_store, ranges, lambda: [state.counts for state in states])
    limit = choose_limit(job, position)
    faults = choose_fault_handler(job, choose_dead_letters(job, session, limit), monitor, limit)
    destination = Destination(pipeline.destination, session)
    choose = Processors(job, settings, ranges, session, destination, faults, stop_signal, limit).choose
    ends = {each.partition: precautions.yields or precautions.stops.get(each.partition) for each in ranges}
    processors = {partition: choose(partition, reason) for partition, reason in ends.items()}
    careful_start = CarefulStart(precautions, pipeline.chunk_records)
    suspects = Suspects(pipeline.name, writer.longest, position, careful_start)
    new_chunk = partial(Chunk, seconds=pipeline.chunk_seconds, stop_signal=stop_signal)
    return PartitionWorker(
        assignment=assignment,
        claims=claims,
        progress_store=progress_store,
        filler=ChunkFiller(assignment, processors, range_reader, session, suspects, new_chunk),
        writer=writer,
        retry=ChunkRetry(assignment, range_reader, writer, claims, stop_signal, suspects),
        suspects=suspects,
        topic=topic,
        monitor=monitor,
        stop_signal=stop_signal,
        precautions=precautions,
        last_words=choose_last_words(job, settings, task),
        drains=drains,
        closing=[*processors.values(), session, shared_consumer, topic, progress_store, events],
    )


def choose_writer(
    job: Job,
    settings: KafkaSettings,
    first: PartitionRange,
    shared_consumer: SharedConsumer,
    claims: Claims,
    admission: Admission,
) -> tuple[ProducerSession, ChunkWriter]:
    """Return the session that takes the records of a worker, and the writer that makes chunks of them."""
    details = DetailsGroup(settings.source, job.plan, first.slot)
    if job.pipeline.delivery == "exactly_once":
        transactional_id = job.plan.transactional_id(first.partition, first.slot)
        own = transactional_settings(settings.destination, job, transactional_id)
        transactions = TransactionalSession(own, job.output_topic, admission)
        return transactions, TransactionalWriter(job, first.slot, transactions, shared_consumer, details)
    session = ProducerSession(
        producer_settings(settings.destination, job.pipeline.destination), job.output_topic, admission
    )
    return session, AtLeastOnceWriter(job, first.slot, session, shared_consumer, claims, details)


def choose_last_words(job: Job, settings: KafkaSettings, task: int) -> LastWords:
    def succeed(states: Sequence[RangeState], reason: str) -> PartitionWorker:
        stops = Precautions(stops={state.partition: reason for state in states})
        # The worker itself has emitted the events of the partitions.
        quiet = without_events(job)
        return build_worker(quiet, settings, [each.range for each in states], StopSignal(), task, precautions=stops)

    return LastWords(partial(reason_with_replicas, settings=settings.destination, written=job.written_topics), succeed)


def choose_events(job: Job, settings: Settings) -> PartitionEvents:
    scaling = job.pipeline.partitions
    if not scaling.emit_partition_execution_events:
        return PartitionEvents()
    if scaling.events_topic is None:
        return LoggedEvents(job)
    return PublishedEvents(job, settings, scaling.events_topic)


def choose_monitor(
    job: Job,
    progress_store: ProgressStore,
    own: Sequence[PartitionRange],
    own_counts: Callable[[], Sequence[Counts]],
) -> RunMonitor:
    """Choose a monitor that looks only for what can happen: a look costs a request to each group with progress."""
    action, budget = job.pipeline.fault_action, job.pipeline.budget
    passes = action in ("dead_letter", "skip")
    if action == "stop_partition" or (passes and not budget.limits):
        return NoMonitor()
    others = OtherWorkers(job, progress_store, own)
    # Only for a ratio do the worker's own counts suffice to show that it is within the limit.
    local = passes and budget.max_dead_letters is None
    return SharedMonitor(others, {own[0].slot} if local else others.slots, budget, own_counts)


def choose_limit(job: Job, position: WorkerPosition) -> Limit:
    seconds = job.pipeline.segment_timeout
    return NO_LIMIT if seconds is None else TimeLimit(seconds, job.step_seconds(seconds), position)


def choose_dead_letters(job: Job, session: ProducerSession, limit: Limit = NO_LIMIT) -> DeadLetters:
    if job.pipeline.dead_letter is None:
        return NoDeadLetters()
    topic = DeadLetterTopic(job.pipeline.dead_letter, job.plan, session, limit)
    return RefaultedDeadLetters(topic) if job.redrive else topic


def choose_fault_handler(job: Job, dead_letters: DeadLetters, monitor: RunMonitor, limit: Limit) -> FaultHandler:
    action = job.pipeline.fault_action
    if action in get_args(FaultAction):
        return FaultHandler(lambda _fault, _message: action, dead_letters, monitor)
    return FaultHandler(UsersChoice(action, Origin.of(job), limit), dead_letters, monitor)


class Processors:
    """Makes the processors of a worker's ranges.

    The segments are imported once for all ranges, and the result of the import stays: a second import may well differ,
    and segments that take batches would be called with records.
    """

    def __init__(
        self,
        job: Job,
        settings: KafkaSettings,
        ranges: Sequence[PartitionRange],
        session: ProducerSession,
        destination: Destination,
        faults: FaultHandler,
        stop_signal: StopSignal,
        limit: Limit,
    ) -> None:
        self._job, self._settings = job, settings
        self._destination, self._faults = destination, faults
        self._stop_signal, self._limit = stop_signal, limit
        self._session = session
        # One ledger for all ranges of a worker: letters of one record may lie in several of them.
        self._ledger = None if job.redrive is None else Ledger(job, job.redrive, ranges, settings.source, session)

    def choose(self, partition: int, ends: str | None = None) -> RecordProcessor:
        """Return the processor of this partition.

        :param ends: the reason to give the partition up before a record is read, if there is one. The segments are not
            imported then: the import may have ended the workers before.
        """
        job, redrive = self._job, self._job.redrive
        if ends is not None:
            return StoppedProcessor(PartitionHaltedError(ends))
        if redrive is None or self._ledger is None:
            return self._choose_inner(partition)
        if redrive.target == "source":
            inner: RecordProcessor = CopyProcessor(back_to_source(job.pipeline, self._session), self._faults)
        else:
            inner = self._choose_inner(partition)
        return RedriveProcessor(job, redrive, inner, self._ledger, self._session)

    def _choose_inner(self, partition: int) -> RecordProcessor:
        job, destination, faults = self._job, self._destination, self._faults
        stop_signal, limit, segments = self._stop_signal, self._limit, self._segments
        if isinstance(segments, PartitionHaltedError):
            return StoppedProcessor(segments)
        if not segments:
            return CopyProcessor(destination, faults)
        paths, at_once = job.pipeline.segments, job.pipeline.partitions.max_in_flight_per_partition
        origin, retries = Origin.of(job), Retries(job.pipeline.retry, stop_signal)
        is_batched, is_awaited = has_batches(segments), has_async(segments)
        context = self._context(partition, is_concurrent=not is_batched and (is_awaited or at_once > 1))
        if is_batched:
            return BatchProcessor(StageChain(paths, context, origin, limit), destination, faults, retries, origin)
        if is_awaited:
            runner: SegmentRunner = EventLoopRunner(paths, context, retries, origin, stop_signal, at_once, limit)
            return ConcurrentProcessor(runner, destination, faults, retries)
        if at_once > 1:
            runner = ThreadRunner(SegmentChain(paths, context, limit), retries, origin, stop_signal, at_once)
            return ConcurrentProcessor(runner, destination, faults, retries)
        return SequentialProcessor(
            SegmentChain(paths, context, limit), destination, faults, retries, origin, stop_signal
        )

    @cached_property
    def _segments(self) -> Sequence[Any] | PartitionHaltedError:
        """Segments of the pipeline, or the error of an import: a partition stops only when it has a record."""
        try:
            return [find_segment(path, self._limit) for path in self._job.pipeline.segments]
        except PartitionHaltedError as stop:
            return stop

    def _context(self, partition: int, is_concurrent: bool) -> SegmentContext:
        return (ConcurrentContext if is_concurrent else SegmentContext)(
            self._job.plan.run_key,
            self._job.plan.topic,
            partition,
            logging.getLogger("kpipe.segments"),
            destination_topic=self._job.pipeline.destination.topic,
            source_registry=self._settings.source_registry,
            destination_registry=self._settings.destination_registry,
        )
