"""Copy of records as they are."""

from __future__ import annotations

import time
from collections.abc import Sequence

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.errors import KnownFaults, UnwritableRecordError
from kpipe_engine.faults.fault_handler import FaultHandler
from kpipe_engine.writing.destination import Destination


class CopyProcessor:
    """Copier of the records of a pipeline without segments."""

    def __init__(self, destination: Destination, faults: FaultHandler) -> None:
        self._destination = destination
        self._faults = faults

    def open(self) -> None:
        """Open nothing."""

    def process(
        self, messages: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float
    ) -> int:
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
        """Always 0: nothing is tried again here."""
        return 0.0

    def close(self) -> None:
        """Release nothing."""

    def _copy(self, message: SourceMessage) -> Fault | None:
        try:
            self._destination.copy(message)
        except UnwritableRecordError as error:
            return error.fault("destination")
        return None
