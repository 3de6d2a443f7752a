"""Precautions of a worker that follows one that died."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kpipe_engine.assignment.worker_position import At
from kpipe_engine.errors import KnownFaults


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Records of a partition, one of which most likely makes workers die."""

    partition: int
    first: int | None
    """First of the suspected offsets; None means the stored offset."""
    after: int
    records: int
    """Number of records in a chunk."""

    def covers(self, at: At) -> bool:
        return at.partition == self.partition and at.first < self.after


@dataclass(frozen=True, slots=True)
class Precautions:
    """Precautions of the next worker of a block."""

    follows_death: bool = False
    """Tells whether the worker follows one that died. It then fetches nothing ahead, so that the next death can be
    distinguished from one that fetching causes."""
    suspicion: Suspicion | None = None
    culprits: Mapping[int, KnownFaults] = field(default_factory=dict)
    """Records that make workers die, by partition. They are handled according to the policy for faults."""
    stops: Mapping[int, str] = field(default_factory=dict)
    """Reasons to stop, by partition."""
    yields: str | None = None
    """Reason to give all partitions up."""
