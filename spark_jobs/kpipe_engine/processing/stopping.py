"""Stop of a partition in front of its first record."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.errors import KnownFaults, PartitionHaltedError


class StoppedProcessor:
    """Stop of a partition that has records: it takes none of them."""

    def __init__(self, stop: PartitionHaltedError) -> None:
        self._stop = stop

    def open(self) -> None:
        raise self._stop

    def process(
        self, messages: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float
    ) -> int:
        """Return 0: only a partition without records gets here."""
        return 0

    @property
    def waits(self) -> float:
        """Always 0: there is nothing to try."""
        return 0.0

    def close(self) -> None:
        """Release nothing."""
