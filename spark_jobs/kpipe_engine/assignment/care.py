"""What a worker has to heed that comes after one that died."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kpipe_engine.assignment.whereabouts import At
from kpipe_engine.errors import KnownFaults


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Records of a partition among which is one, most likely, that makes workers die."""

    partition: int
    first: int | None
    """None is what comes after the stored offset."""
    after: int
    records: int
    """So many go into a chunk."""

    def covers(self, at: At) -> bool:
        return at.partition == self.partition and at.first < self.after


@dataclass(frozen=True, slots=True)
class Precautions:
    """What the next worker of a block has to heed."""

    follows_death: bool = False
    """Whether it follows one that died. Nothing is fetched ahead then, so that the next death can be told from one that
    fetching brings about."""
    suspicion: Suspicion | None = None
    culprits: Mapping[int, KnownFaults] = field(default_factory=dict)
    """By partition: records that make workers die. They are handled as the policy for faults says."""
    stops: Mapping[int, str] = field(default_factory=dict)
    """By partition: why it has to stop."""
    yields: str | None = None
    """Why all partitions have to be given up."""
