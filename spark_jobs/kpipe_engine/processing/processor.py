"""The protocol between a partition worker and the processor of its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.errors import KnownFaults


class RecordProcessor(Protocol):
    """Processor of the records that a partition worker has read."""

    def process(
        self, messages: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float
    ) -> int:
        """Handle messages until the clock passes `until`, and return the number of those that were handled."""

    def open(self) -> None:
        """Import and open the segments that are not open yet: no record is at fault for an error in here."""

    @property
    def waits(self) -> float:
        """Seconds until the next record should be tried; the worker waits for them between two chunks."""

    def close(self) -> None:
        """Release the resources that user code holds."""
