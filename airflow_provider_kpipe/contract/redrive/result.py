"""The result of a redrive, or of its dry run: the task's XCom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

from airflow_provider_kpipe.contract.documents import Document
from airflow_provider_kpipe.contract.faults.causes import Causes, merged
from airflow_provider_kpipe.contract.progress.progress import OWN_COUNTERS, PartitionProgress
from airflow_provider_kpipe.contract.redrive.redrive import COUNTERS, OUTCOMES, RedriveOrder, RedriveTarget


@dataclass(frozen=True, slots=True)
class Sample:
    """One dead letter that a dry run would redrive, in short."""

    dead_letter: str
    """Coordinates of the letter, such as orders.dead-0-17."""
    record: str
    """Coordinates of the record inside."""
    key: str | None
    pipeline: str
    exception_class: str
    message: str
    occurred_at: str
    attempt: int


@dataclass(frozen=True, slots=True)
class PartitionRedrive:
    """The result for one partition of the dead-letter topic."""

    partition: int
    start: int
    end: int
    next_offset: int
    complete: bool
    reason: str | None
    read: int
    written: int
    """Records in the source or the output topic; segments may make several of one letter, or none."""
    dead_lettered: int
    """Redriven letters whose record faulted again, and is a new dead letter."""
    outcomes: Mapping[str, int]
    counted: Mapping[str, int] = field(default_factory=dict)
    """The counts of segments, by name."""
    causes: Causes = ()
    """The causes of the new dead letters."""

    @classmethod
    def of(cls, progress: PartitionProgress) -> PartitionRedrive:
        counts = progress.counts
        return cls(
            partition=progress.range.partition,
            start=progress.range.start,
            end=progress.range.end,
            next_offset=progress.next_offset,
            complete=progress.complete,
            reason=progress.reason,
            read=counts.read,
            written=counts.written,
            dead_lettered=counts.dead_lettered,
            outcomes={outcome: counts.named.get(counter, 0) for outcome, counter in COUNTERS.items()},
            counted={name: count for name, count in counts.named.items() if not name.startswith(OWN_COUNTERS)},
            causes=counts.causes,
        )


@dataclass(frozen=True, slots=True)
class RedriveResult(Document):
    """The dead letters of the ranges, counted by outcome. A dry run has the outcomes that a redrive would have."""

    SCHEMA_VERSION: ClassVar[int] = 1

    run_key: str
    pipeline: str
    topic: str
    target: RedriveTarget
    dry_run: bool
    complete: bool
    outcomes: Mapping[str, int]
    written: int
    dead_lettered: int
    partitions: tuple[PartitionRedrive, ...]
    exception_classes: Mapping[str, int]
    """Counts of the letters that would be redriven. Only a dry run has them, and the pipelines and samples below."""
    pipelines: Mapping[str, int]
    samples: tuple[Sample, ...]
    counted: Mapping[str, int] = field(default_factory=dict)
    """The counts of segments, in all partitions."""
    causes: Causes = ()
    """The causes of the new dead letters, in all partitions."""

    @classmethod
    def of(
        cls,
        order: RedriveOrder,
        partitions: Iterable[PartitionRedrive],
        *,
        exception_classes: Mapping[str, int] | None = None,
        pipelines: Mapping[str, int] | None = None,
        samples: Iterable[Sample] = (),
    ) -> Self:
        each = tuple(partitions)
        counted: Counter[str] = Counter()
        for one in each:
            counted.update(one.counted)
        return cls(
            run_key=order.plan.run_key,
            pipeline=order.plan.pipeline,
            topic=order.plan.topic,
            target=order.redrive.target,
            dry_run=order.plan.dry_run,
            complete=all(one.complete for one in each),
            outcomes={outcome: sum(one.outcomes[outcome] for one in each) for outcome in OUTCOMES},
            written=sum(one.written for one in each),
            dead_lettered=sum(one.dead_lettered for one in each),
            partitions=each,
            exception_classes=exception_classes or {},
            pipelines=pipelines or {},
            samples=tuple(samples),
            counted=dict(counted),
            causes=merged(cause for one in each for cause in one.causes),
        )
