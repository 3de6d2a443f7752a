"""Records on their way through the user's segments, one after another."""

from __future__ import annotations

import time
from collections.abc import Sequence

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import Origin, Record, SourceMessage
from kpipe_engine.errors import KnownFaults, PartitionHaltedError, RetryLaterError, SegmentError
from kpipe_engine.faults.fault_handler import FaultHandler
from kpipe_engine.processing.retries import Retries
from kpipe_engine.processing.segment_chain import SegmentChain
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing.destination import Destination
from kpipe_engine.writing.outputs import write_outputs


class SequentialProcessor:
    """Processor that takes records through the user's segments, one at a time and in order."""

    def __init__(
        self,
        segments: SegmentChain,
        destination: Destination,
        faults: FaultHandler,
        retries: Retries,
        origin: Origin,
        stop_signal: StopSignal,
    ) -> None:
        self._segments = segments
        self._destination = destination
        self._faults = faults
        self._retries = retries
        self._origin = origin
        self._stop_signal = stop_signal

    def open(self) -> None:
        self._segments.open()

    def process(
        self, messages: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float
    ) -> int:
        self._segments.count_into(counts.named)
        clock, stop_signal, named, handled = time.monotonic, self._stop_signal, counts.named, 0
        for message in messages:
            if stop_signal.is_set or clock() > until:
                break
            counted = dict(named) if named else {}
            fault = known_faults.get(message.offset()) if known_faults else None
            try:
                fault = fault or self._pass(message, counts, until)
                if fault is not None:
                    self._faults.take(message, fault, counts)
            except RetryLaterError:
                break
            except PartitionHaltedError:
                # The record is not terminal: its counts are added when it passes.
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
