"""The ranges of one writer on their way through a worker."""

from __future__ import annotations

from collections.abc import Iterable

from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.errors import PartitionHaltedError, PipelineHaltedError


class Assignment(tuple[RangeState, ...]):
    """All ranges of a worker. One is read at a time: the current one."""

    current: RangeState

    def __init__(self, _assignment: Iterable[RangeState]) -> None:
        self.current = self[0]

    @property
    def partitions(self) -> list[int]:
        return [state.partition for state in self]

    @property
    def working(self) -> list[RangeState]:
        return [state for state in self if state.works]

    @property
    def unsettled(self) -> list[RangeState]:
        return [state for state in self if not state.is_settled]

    @property
    def not_revoked(self) -> list[RangeState]:
        return [state for state in self if not state.is_revoked]

    @property
    def ours(self) -> list[RangeState]:
        return [state for state in self if state.is_ours]

    def stop(self, stop: PartitionHaltedError) -> None:
        """Stop the current range, and the others with it if the whole pipeline has to stop."""
        self.current.stop(stop)
        if isinstance(stop, PipelineHaltedError):
            for other in self.working:
                other.end("stopped", f"partition {self.current.partition} stopped the pipeline: {stop}")

    def stop_all(self, stop: PartitionHaltedError) -> None:
        """Stop each working range at its position."""
        for state in self.working:
            state.stop(stop)
