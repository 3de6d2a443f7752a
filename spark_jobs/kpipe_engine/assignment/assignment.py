"""The ranges of one writer on their way through a worker."""

from __future__ import annotations

from collections.abc import Iterable

from kpipe_engine.assignment.range_state import Lane
from kpipe_engine.errors import PartitionStoppedError, PipelineStoppedError


class Lanes(tuple[Lane, ...]):
    """All of a worker. One is read at a time: the current one."""

    current: Lane

    def __init__(self, _lanes: Iterable[Lane]) -> None:
        self.current = self[0]

    @property
    def partitions(self) -> list[int]:
        return [lane.partition for lane in self]

    @property
    def working(self) -> list[Lane]:
        return [lane for lane in self if lane.works]

    @property
    def unsettled(self) -> list[Lane]:
        return [lane for lane in self if not lane.is_settled]

    @property
    def not_revoked(self) -> list[Lane]:
        return [lane for lane in self if not lane.is_revoked]

    @property
    def ours(self) -> list[Lane]:
        return [lane for lane in self if lane.is_ours]

    def stop(self, stop: PartitionStoppedError) -> None:
        """The current one, and the others with it where the whole pipeline is to stop."""
        self.current.stop(stop)
        if isinstance(stop, PipelineStoppedError):
            for other in self.working:
                other.end("stopped", f"partition {self.current.partition} stopped the pipeline: {stop}")

    def stop_all(self, stop: PartitionStoppedError) -> None:
        """Each where it stands."""
        for lane in self.working:
            lane.stop(stop)
