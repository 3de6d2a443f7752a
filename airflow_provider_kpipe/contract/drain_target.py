"""What a gate waits for: it crosses to the triggerer while the gate is deferred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from airflow_provider_kpipe.contract.offsets import At, Explicit, Latest, OffsetLimit, check_partitions
from airflow_provider_kpipe.contract.plan import IsolationLevel
from airflow_provider_kpipe.contract.strict_json import Document


@dataclass(frozen=True, slots=True)
class DrainTarget(Document):
    """What has to be committed: up to offsets, up to a moment, or, with neither, up to the end as it is now."""

    SCHEMA_VERSION: ClassVar[int] = 1

    group: str
    topic: str
    isolation_level: IsolationLevel
    offsets: Mapping[int, int] | None
    timestamp_ms: int | None
    partitions: tuple[int, ...] | None

    @classmethod
    def of(
        cls,
        until: OffsetLimit,
        *,
        group: str,
        topic: str,
        isolation_level: IsolationLevel,
        partitions: tuple[int, ...] | None,
    ) -> DrainTarget:
        offsets, timestamp_ms = None, None
        match until:
            case Explicit(named):
                offsets = named
            case At(moment):
                timestamp_ms = moment
            case Latest():
                pass
            case _:
                raise ValueError(f"until={until!r}: use 'latest', a moment, an offset per partition, or a plan")
        # A gate over nothing would be open at once.
        if offsets is not None and not offsets:
            raise ValueError("until is empty, and names no partition: name some, or leave it out")
        if partitions is not None:
            check_partitions(partitions)
        return cls(group, topic, isolation_level, offsets, timestamp_ms, partitions)

    @property
    def until(self) -> OffsetLimit:
        if self.offsets is not None:
            return Explicit(self.offsets)
        return Latest() if self.timestamp_ms is None else At(self.timestamp_ms)
