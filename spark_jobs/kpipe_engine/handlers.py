"""From a record that was read to one that is on its way: copied as it is, or through segments."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from airflow_provider_kpipe.contract.faults import Fault
from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.progress import Counts
from airflow_provider_kpipe.record import Origin, Record, SourceMessage
from airflow_provider_kpipe.segments import SegmentContext
from kpipe_engine.async_segments import has_async
from kpipe_engine.batch_handler import BatchHandler
from kpipe_engine.concurrent_handler import ConcurrentHandler
from kpipe_engine.crews import ConcurrentContext, Coroutines, Crew, Threads
from kpipe_engine.delivery import Delivery
from kpipe_engine.destination import Destination
from kpipe_engine.errors import NotDueError, PartitionStoppedError, SegmentError, UnwritableRecordError
from kpipe_engine.fault_policy import FaultPolicy
from kpipe_engine.handling import Handler, KnownFaults
from kpipe_engine.outputs import write_outputs
from kpipe_engine.redrive import RedriveHandler
from kpipe_engine.redrive_ledger import Ledger
from kpipe_engine.restored import back_to_source
from kpipe_engine.retry import Retries
from kpipe_engine.segments import SegmentChain, find_segment
from kpipe_engine.stages import StageChain, has_batches
from kpipe_engine.time_limit import Limit
from kpipe_engine.yielding import YieldOrders


class CopyHandler:
    """No segments: records go as they are."""

    def __init__(self, destination: Destination, faults: FaultPolicy) -> None:
        self._destination = destination
        self._faults = faults

    def open(self) -> None:
        """There is nothing to open."""

    def handle(self, messages: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float) -> int:
        handled = 0 if known_faults else self._destination.copy_while_taken(messages)
        counts.read += handled
        counts.written += handled
        while handled < len(messages) and time.monotonic() < until:
            message = messages[handled]
            fault = known_faults.get(message.offset()) or self._copy(message)
            if fault is None:
                counts.written += 1
            else:
                self._faults.take(message, fault, counts)
            counts.read += 1
            handled += 1
        return handled

    @property
    def waits(self) -> float:
        """Nothing is tried again here."""
        return 0.0

    def close(self) -> None:
        """Nothing is held."""

    def _copy(self, message: SourceMessage) -> Fault | None:
        try:
            self._destination.copy(message)
        except UnwritableRecordError as error:
            return error.fault("destination")
        return None


class SegmentHandler:
    """Records go through the user's segments, one at a time and in order."""

    def __init__(
        self,
        segments: SegmentChain,
        destination: Destination,
        faults: FaultPolicy,
        retries: Retries,
        origin: Origin,
        orders: YieldOrders,
    ) -> None:
        self._segments = segments
        self._destination = destination
        self._faults = faults
        self._retries = retries
        self._origin = origin
        self._orders = orders

    def open(self) -> None:
        self._segments.open()

    def handle(self, messages: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float) -> int:
        self._segments.count_into(counts.named)
        clock, orders, named, handled = time.monotonic, self._orders, counts.named, 0
        for message in messages:
            if orders.given or clock() > until:
                break
            counted = dict(named) if named else {}
            fault = known_faults.get(message.offset()) if known_faults else None
            try:
                fault = fault or self._pass(message, counts, until)
                if fault is not None:
                    self._faults.take(message, fault, counts)
            except NotDueError:
                break
            except PartitionStoppedError:
                # The record is not terminal: it counts where it passes.
                named.clear()
                named.update(counted)
                raise
            counts.read += 1
            handled += 1
        return handled

    @property
    def waits(self) -> float:
        return self._retries.waits

    def close(self) -> None:
        self._segments.close()

    def _pass(self, message: SourceMessage, counts: Counts, until: float) -> Fault | None:
        while True:
            try:
                # Every try starts from the record as it was read.
                records = self._segments.process(Record(message, self._origin))
                break
            except SegmentError as error:
                fault = self._retries.fault_or_wait(message.offset(), error, counts, until)
                if fault is not None:
                    return fault
        if self._retries.tried:
            self._retries.forget(message.offset())
        return write_outputs(self._destination, message, records, counts)


class StoppingHandler:
    """Takes no record: a partition that has one stops."""

    def __init__(self, stop: PartitionStoppedError) -> None:
        self._stop = stop

    def open(self) -> None:
        raise self._stop

    def handle(self, messages: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float) -> int:
        """Nothing gets here but what has no records."""
        return 0

    @property
    def waits(self) -> float:
        """There is nothing to try."""
        return 0.0

    def close(self) -> None:
        """Nothing is held."""


def choose_ledger(
    job: Job, settings: KafkaSettings, ranges: Sequence[PartitionRange], delivery: Delivery
) -> Ledger | None:
    """One for all ranges of a worker: letters of one record may lie in several of them."""
    return None if job.redrive is None else Ledger(job, job.redrive, ranges, settings.source, delivery)


class Handlers:
    """Makes the handlers of a worker's ranges.

    The segments are imported once for all of them. What an import came to stays: a second one may well come to
    something else, and segments that take batches would be called with records.
    """

    def __init__(
        self,
        job: Job,
        settings: KafkaSettings,
        ranges: Sequence[PartitionRange],
        destination: Destination,
        faults: FaultPolicy,
        orders: YieldOrders,
        limit: Limit,
    ) -> None:
        self._job, self._settings = job, settings
        self._destination, self._faults = destination, faults
        self._orders, self._limit = orders, limit
        self._ledger = choose_ledger(job, settings, ranges, destination.delivery)

    def choose(self, partition: int, ends: str | None = None) -> Handler:
        """The one of this partition.

        :param ends: why the partition is given up before a record is read, if it is. Nothing is imported then: that may
            be what has ended the workers before.
        """
        job, redrive = self._job, self._job.redrive
        if ends is not None:
            return StoppingHandler(PartitionStoppedError(ends))
        if redrive is None or self._ledger is None:
            return self._choose_inner(partition)
        if redrive.target == "source":
            inner: Handler = CopyHandler(back_to_source(job.pipeline, self._destination.delivery), self._faults)
        else:
            inner = self._choose_inner(partition)
        return RedriveHandler(job, redrive, inner, self._ledger, self._destination.delivery)

    def _choose_inner(self, partition: int) -> Handler:
        job, destination, faults = self._job, self._destination, self._faults
        orders, limit, segments = self._orders, self._limit, self._segments
        if isinstance(segments, PartitionStoppedError):
            return StoppingHandler(segments)
        if not segments:
            return CopyHandler(destination, faults)
        paths, at_once = job.pipeline.segments, job.pipeline.partitions.max_in_flight_per_partition
        origin, retries = Origin.of(job), Retries(job.pipeline.retry, orders)
        is_batched, is_awaited = has_batches(segments), has_async(segments)
        context = self._context(partition, is_concurrent=not is_batched and (is_awaited or at_once > 1))
        if is_batched:
            return BatchHandler(StageChain(paths, context, origin, limit), destination, faults, retries, origin)
        if is_awaited:
            crew: Crew = Coroutines(paths, context, retries, origin, orders, at_once, limit)
            return ConcurrentHandler(crew, destination, faults, retries)
        if at_once > 1:
            crew = Threads(SegmentChain(paths, context, limit), retries, origin, orders, at_once)
            return ConcurrentHandler(crew, destination, faults, retries)
        return SegmentHandler(SegmentChain(paths, context, limit), destination, faults, retries, origin, orders)

    @cached_property
    def _segments(self) -> Sequence[Any] | PartitionStoppedError:
        """What their import paths name, or why they cannot be imported: no partition stops before it has a record."""
        try:
            return [find_segment(path, self._limit) for path in self._job.pipeline.segments]
        except PartitionStoppedError as stop:
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
