"""Who works on a partition: leases are ordered, and the latest one wins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Lease:
    """The moment of the plan, then the attempt at it, then the Spark task within the attempt."""

    planned_at: str
    attempt: str
    task: int

    @property
    def of_attempt(self) -> Lease:
        """What all tasks of an attempt have in common."""
        return Lease(self.planned_at, self.attempt, 0)


def lease_id_of(topic: str, partition: int) -> str:
    """What records and events call the partition that a lease is on."""
    return f"kafka:{topic}:{partition}"
