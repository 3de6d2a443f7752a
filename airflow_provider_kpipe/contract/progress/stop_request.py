"""A request to a running job to give its partitions up, stored in Kafka, which reaches the job on any cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from airflow_provider_kpipe.contract.documents import Document
from airflow_provider_kpipe.contract.plan import Plan


@dataclass(frozen=True, slots=True)
class StopRequest(Document):
    """The metadata of an offset in the plan's stop group. The offset is the attempt, which any version can read."""

    SCHEMA_VERSION: ClassVar[int] = 1

    attempt: int
    reason: str


def stop_partition_of(plan: Plan) -> int:
    """Return the partition whose offset in the stop group holds the request."""
    return min(each.partition for each in plan.ranges)
