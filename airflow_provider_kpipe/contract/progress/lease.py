"""Who works on a partition: leases are ordered, and the latest one wins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Lease:
    """The number of the plan, that of the attempt at it, and the Spark task within the attempt.

    Both numbers are drawn from a counter in Kafka: clocks of different hosts disagree.
    """

    plan: int
    attempt: int
    task: int

    @property
    def of_attempt(self) -> Lease:
        """The part that all tasks of an attempt have in common."""
        return Lease(self.plan, self.attempt, 0)


NO_LEASE = Lease(0, 0, 0)


def lease_id_of(topic: str, partition: int) -> str:
    """What records and events call the partition that a lease is on."""
    return f"kafka:{topic}:{partition}"
