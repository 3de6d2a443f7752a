"""Leases of workers on partitions: they are ordered, and the latest one wins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Lease:
    """The numbers of the plan, of the attempt at it, and of the Spark task within the attempt.

    The first two are drawn from a counter in Kafka, since clocks of different hosts disagree.
    """

    plan: int
    attempt: int
    task: int

    @property
    def of_attempt(self) -> Lease:
        """The part that all tasks of an attempt have in common."""
        return Lease(self.plan, self.attempt, 0)


NO_LEASE = Lease(0, 0, 0)
