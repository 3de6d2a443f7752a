"""What a partition worker expects of whoever handles its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.errors import KnownFaults


class RecordProcessor(Protocol):
    """Takes what was read."""

    def process(
        self, messages: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float
    ) -> int:
        """How many of the messages were handled before the clock passed `until`."""

    def open(self) -> None:
        """Import and open what is not open yet: no record is at fault for what goes wrong in here."""

    @property
    def waits(self) -> float:
        """For how many seconds the next record should not be tried; waited for between two chunks."""

    def close(self) -> None:
        """Let go of what user code holds."""
