"""What the other partitions of a run are doing, where a pipeline's policies depend on it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from confluent_kafka import TopicPartition

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.policies import DeadLetterBudget
from airflow_provider_kpipe.contract.progress import Counts, StoredProgress
from kpipe_engine.errors import PartitionStoppedError, PipelineStoppedError
from kpipe_engine.source import Source

ANSWER_SECONDS = 60.0


class RunWatch(Protocol):
    """Looks at the run between chunks."""

    def look(self) -> None:
        """Yield, by raising, if another partition has stopped the pipeline."""

    def allow_dead_letter(self, counts: Counts, source_offset: int) -> None:
        """Stop the pipeline, by raising, in front of a dead letter that is one too many for the run."""


class NoWatch:
    """Nothing a partition does concerns the others."""

    def look(self) -> None:
        """There is nothing to see."""

    def allow_dead_letter(self, counts: Counts, source_offset: int) -> None:
        """There is no limit."""


class SharedWatch:
    """Reads the progress that all partitions of the run have stored, which works on any cluster manager."""

    def __init__(self, job: Job, own: Collection[int], source: Source) -> None:
        self._plan, self._attempt = job.plan, job.attempt
        self._budget: DeadLetterBudget = job.pipeline.budget
        self._source = source
        self._others = [
            TopicPartition(job.plan.topic, each.partition) for each in job.plan.pending if each.partition not in own
        ]
        self._elsewhere = Counts()

    def look(self) -> None:
        if not self._others:
            return
        elsewhere = Counts()
        for stored in self._source.consumer.committed(self._others, timeout=ANSWER_SECONDS):
            progress = StoredProgress.read_text(stored.metadata)
            if progress is None or progress.run_key != self._plan.run_key:
                continue
            if progress.stops_attempt == self._attempt:
                raise PartitionStoppedError(f"partition {stored.partition} stopped the pipeline: {progress.stopped}")
            elsewhere += progress.counts
        self._elsewhere = elsewhere

    def allow_dead_letter(self, counts: Counts, source_offset: int) -> None:
        reason = self._budget.exceeded_by(
            counts.dead_lettered + self._elsewhere.dead_lettered + 1, counts.read + self._elsewhere.read + 1
        )
        if reason:
            raise PipelineStoppedError(
                f"offset {source_offset}: {reason}; what is stored stays stored: mend the cause or raise the limit, "
                "then run again",
                source_offset,
            )


def choose_watch(job: Job, own: Collection[int], source: Source) -> RunWatch:
    """Looking costs a request for each chunk, so it is done only where something depends on it."""
    may_stop_all = job.pipeline.fault_action not in ("dead_letter", "skip", "stop_partition")
    if may_stop_all or job.pipeline.budget.limits:
        return SharedWatch(job, own, source)
    return NoWatch()
