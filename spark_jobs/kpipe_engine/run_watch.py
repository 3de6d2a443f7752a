"""What the other partitions of a run are doing, where a pipeline's policies depend on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from confluent_kafka import TopicPartition

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.policies import DeadLetterBudget
from airflow_provider_kpipe.contract.progress import Counts, StoredProgress
from airflow_provider_kpipe.contract.strict_json import DocumentError
from kpipe_engine.clients import ANSWER_SECONDS, Settings, group_reader
from kpipe_engine.errors import PartitionStoppedError, PipelineStoppedError

OwnCounts = Callable[[], Sequence[Counts]]


class RunWatch(Protocol):
    """Looks at the run between chunks."""

    def look(self) -> None:
        """Yield, by raising, if another partition has stopped the pipeline."""

    def allow_dead_letter(self, source_offset: int) -> None:
        """Stop the pipeline, by raising, in front of a dead letter that is one too many for the run."""

    def close(self) -> None:
        """Look no more."""


class NoWatch:
    """Nothing a partition does concerns the others."""

    def look(self) -> None:
        """There is nothing to see."""

    def allow_dead_letter(self, source_offset: int) -> None:
        """There is no limit."""

    def close(self) -> None:
        """Nothing is held."""


class SharedWatch:
    """Reads the progress that all others at work on the run have stored, which works on any cluster manager.

    Pieces of a partition store theirs in groups of their own, so there is a reader for each slot.
    """

    def __init__(self, job: Job, settings: Settings, own: Sequence[PartitionRange], own_counts: OwnCounts) -> None:
        self._plan, self._attempt = job.plan, job.attempt
        self._budget: DeadLetterBudget = job.pipeline.budget
        self._own_counts = own_counts
        mine = {(each.partition, each.slot) for each in own}
        self._others: dict[int, list[TopicPartition]] = {}
        for piece in (piece for planned in job.plan.pending for piece in planned.pieces):
            if (piece.partition, piece.slot) not in mine:
                self._others.setdefault(piece.slot, []).append(TopicPartition(job.plan.topic, piece.partition))
        self._readers = {slot: group_reader(settings, job.plan, slot) for slot in self._others}
        self._elsewhere = Counts()

    def look(self) -> None:
        elsewhere = Counts()
        for slot, reader in self._readers.items():
            for stored in reader.committed(self._others[slot], timeout=ANSWER_SECONDS):
                progress = _progress_in(stored)
                if progress is None or not progress.is_of(self._plan.run_key, self._plan.created_at):
                    continue
                if progress.stops_attempt == self._attempt:
                    raise PartitionStoppedError(f"partition {stored.partition} stopped the pipeline: {progress.reason}")
                elsewhere += progress.counts
        self._elsewhere = elsewhere

    def allow_dead_letter(self, source_offset: int) -> None:
        so_far = sum(self._own_counts(), self._elsewhere)
        reason = self._budget.exceeded_by(so_far.dead_lettered + 1, so_far.read + 1)
        if reason:
            raise PipelineStoppedError(
                f"offset {source_offset}: {reason}; what is stored stays stored: mend the cause or raise the limit, "
                "then run again",
                source_offset,
            )

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()


def _progress_in(stored: TopicPartition) -> StoredProgress | None:
    try:
        return StoredProgress.read_text(stored.metadata, f"partition {stored.partition}")
    except DocumentError as error:
        raise PartitionStoppedError(f"what the run has counted is not known: {error}") from error


def choose_watch(job: Job, settings: Settings, own: Sequence[PartitionRange], own_counts: OwnCounts) -> RunWatch:
    """Looking costs a request for each chunk, so it is done only where something depends on it."""
    may_stop_all = job.pipeline.fault_action not in ("dead_letter", "skip", "stop_partition")
    if may_stop_all or job.pipeline.budget.limits:
        return SharedWatch(job, settings, own, own_counts)
    return NoWatch()
