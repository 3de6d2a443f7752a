"""Stops a partition in front of its first record."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.errors import KnownFaults, PartitionHaltedError


class StoppedProcessor:
    """Takes no record: a partition that has one stops."""

    def __init__(self, stop: PartitionHaltedError) -> None:
        self._stop = stop

    def open(self) -> None:
        raise self._stop

    def process(
        self, messages: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float
    ) -> int:
        """Nothing gets here but what has no records."""
        return 0

    @property
    def waits(self) -> float:
        """There is nothing to try."""
        return 0.0

    def close(self) -> None:
        """Nothing is held."""
