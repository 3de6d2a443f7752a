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
from kpipe_engine.assignment.care import Precautions
from kpipe_engine.assignment.caution import CarefulStart
from kpipe_engine.assignment.claiming import Claims
from kpipe_engine.assignment.events import LoggedEvents, PartitionEvents, PublishedEvents, without_events
from kpipe_engine.assignment.other_workers import OtherWorkers
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.assignment.run_monitor import NoMonitor, RunMonitor, SharedMonitor
from kpipe_engine.assignment.whereabouts import WorkerPosition
from kpipe_engine.batches.processor import BatchProcessor
from kpipe_engine.batches.stages import StageChain, has_batches
from kpipe_engine.chunk_retry import ChunkRetry
from kpipe_engine.client_settings import Settings
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
from kpipe_engine.reading.details_group import DetailsGroup
from kpipe_engine.reading.planned_topic import PlannedTopic
from kpipe_engine.reading.range_reader import RangeReader
from kpipe_engine.redrive.ledger import Ledger
from kpipe_engine.redrive.original_record import back_to_source
from kpipe_engine.redrive.processor import RedriveProcessor
from kpipe_engine.redrive.refaulted import RefaultedDeadLetters
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing.backpressure import Admission
from kpipe_engine.writing.chunk_writer import AtLeastOnceWriter, Delivery, TransactionalWriter
from kpipe_engine.writing.destination import Destination
from kpipe_engine.writing.missing_replicas import is_well, reason_with_replicas


def build_worker(
    job: Job,
    settings: KafkaSettings,
    ranges: Sequence[PartitionRange],
    stop_signal: StopSignal,
    task: int = 0,
    *,
    care: Precautions | None = None,
    whereabouts: WorkerPosition | None = None,
) -> PartitionWorker:
    """Build the worker of these ranges, which share one writer.

    :param task: the number of the Spark task, which is part of the worker's lease
    :param care: the precautions that the worker takes after one that died
    """
    pipeline, plan, first = job.pipeline, job.plan, ranges[0]
    care, whereabouts = care or Precautions(), whereabouts or WorkerPosition()
    pieces = {each.partition: len(each.pieces) for each in plan.ranges}
    assignment = Assignment([RangeState(each, pieces[each.partition]) for each in ranges])
    events = choose_events(job, settings.destination)
    source = RangeReader(settings.source, pipeline.source, plan, first)
    takes_records = partial(is_well, settings.destination, job.written_topics)
    admission = Admission(source, events, assignment, stop_signal, takes_records)
    ownership = Claims(job, task, first.slot, source, settings)
    details = DetailsGroup(settings.source, plan, first.slot)
    delivery = choose_delivery(settings.destination, job, first, source, ownership, details, admission)
    watch = choose_monitor(job, settings.source, source, ranges, lambda: [state.counts for state in assignment])
    limit = choose_limit(job, whereabouts)
    faults = choose_fault_handler(job, choose_dead_letters(job, delivery, limit), watch, limit)
    destination = Destination(pipeline.destination, delivery)
    processors = Processors(job, settings, ranges, delivery, destination, faults, stop_signal, limit)
    return PartitionWorker(
        pipeline=pipeline,
        stop_signal=stop_signal,
        assignment=assignment,
        processors={at: processors.choose(at, care.yields or care.stops.get(at)) for at in assignment.partitions},
        source=source,
        topic=PlannedTopic(settings.source, plan),
        ownership=ownership,
        delivery=delivery,
        watch=watch,
        events=events,
        recovery=ChunkRetry(assignment, source, delivery, ownership, events, stop_signal),
        care=care,
        caution=CarefulStart(care, pipeline.chunk_records),
        whereabouts=whereabouts,
        explain=partial(reason_with_replicas, settings=settings.destination, written=job.written_topics),
        # The worker itself has emitted the events of the partitions.
        successor=partial(build_worker, without_events(job), settings, task=task),
    )


def choose_delivery(
    settings: Settings,
    job: Job,
    first: PartitionRange,
    source: RangeReader,
    ownership: Claims,
    details: DetailsGroup,
    admission: Admission,
) -> Delivery:
    if job.pipeline.delivery == "exactly_once":
        return TransactionalWriter(settings, job, first, source, details, admission)
    return AtLeastOnceWriter(settings, job, first, source, ownership, details, admission)


def choose_events(job: Job, settings: Settings) -> PartitionEvents:
    scaling = job.pipeline.partitions
    if not scaling.emit_partition_execution_events:
        return PartitionEvents()
    if scaling.events_topic is None:
        return LoggedEvents(job)
    return PublishedEvents(job, settings, scaling.events_topic)


def choose_monitor(
    job: Job,
    settings: Settings,
    source: RangeReader,
    own: Sequence[PartitionRange],
    own_counts: Callable[[], Sequence[Counts]],
) -> RunMonitor:
    """Choose a monitor that looks only for what can happen: a look costs a request to each group with progress."""
    action, budget = job.pipeline.fault_action, job.pipeline.budget
    passes = action in ("dead_letter", "skip")
    if action == "stop_partition" or (passes and not budget.limits):
        return NoMonitor()
    others = OtherWorkers(job, settings, source, own)
    # Only for a ratio do the worker's own counts suffice to show that it is within the limit.
    local = passes and budget.max_dead_letters is None
    return SharedMonitor(others, {own[0].slot} if local else others.slots, budget, own_counts)


def choose_limit(job: Job, whereabouts: WorkerPosition) -> Limit:
    seconds = job.pipeline.segment_timeout
    return NO_LIMIT if seconds is None else TimeLimit(seconds, job.step_seconds(seconds), whereabouts)


def choose_dead_letters(job: Job, delivery: Delivery, limit: Limit = NO_LIMIT) -> DeadLetters:
    if job.pipeline.dead_letter is None:
        return NoDeadLetters()
    topic = DeadLetterTopic(job.pipeline.dead_letter, job.plan, delivery, limit)
    return RefaultedDeadLetters(topic) if job.redrive else topic


def choose_fault_handler(job: Job, dead_letters: DeadLetters, watch: RunMonitor, limit: Limit) -> FaultHandler:
    action = job.pipeline.fault_action
    if action in get_args(FaultAction):
        return FaultHandler(lambda _fault, _message: action, dead_letters, watch)
    return FaultHandler(UsersChoice(action, Origin.of(job), limit), dead_letters, watch)


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
        delivery: Delivery,
        destination: Destination,
        faults: FaultHandler,
        stop_signal: StopSignal,
        limit: Limit,
    ) -> None:
        self._job, self._settings = job, settings
        self._destination, self._faults = destination, faults
        self._stop_signal, self._limit = stop_signal, limit
        self._delivery = delivery
        # One ledger for all ranges of a worker: letters of one record may lie in several of them.
        self._ledger = None if job.redrive is None else Ledger(job, job.redrive, ranges, settings.source, delivery)

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
            inner: RecordProcessor = CopyProcessor(back_to_source(job.pipeline, self._delivery), self._faults)
        else:
            inner = self._choose_inner(partition)
        return RedriveProcessor(job, redrive, inner, self._ledger, self._delivery)

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
            crew: SegmentRunner = EventLoopRunner(paths, context, retries, origin, stop_signal, at_once, limit)
            return ConcurrentProcessor(crew, destination, faults, retries)
        if at_once > 1:
            crew = ThreadRunner(SegmentChain(paths, context, limit), retries, origin, stop_signal, at_once)
            return ConcurrentProcessor(crew, destination, faults, retries)
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
