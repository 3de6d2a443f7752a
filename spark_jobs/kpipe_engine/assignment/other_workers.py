"""Stored progress of all other workers of a run, which works on any cluster manager."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from confluent_kafka import TopicPartition

from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.progress import Counts, StoredProgress
from kpipe_engine.assignment.progress_store import ProgressStore
from kpipe_engine.errors import PartitionHaltedError


class OtherWorkers:
    """All pieces of the run but the worker's own: how much they have counted, and whether one stops the pipeline."""

    def __init__(self, job: Job, progress_store: ProgressStore, own: Sequence[PartitionRange]) -> None:
        self._job, self._progress_store = job, progress_store
        mine = {(each.partition, each.slot) for each in own}
        self._asked: dict[int, list[TopicPartition]] = {}
        for piece in (piece for planned in job.plan.pending for piece in planned.pieces):
            if (piece.partition, piece.slot) not in mine:
                self._asked.setdefault(piece.slot, []).append(TopicPartition(job.plan.topic, piece.partition))
        self._texts: dict[tuple[int, int], str] = {}
        # Stored progress seldom changes between two looks: each text is decoded once.
        self._counted: dict[tuple[int, int], tuple[str, Counts]] = {}
        self.stopped: tuple[int, str | None] | None = None
        """The partition that has stopped the pipeline in this attempt, and why."""

    @property
    def slots(self) -> Collection[int]:
        return self._asked.keys()

    def look(self, slots: Collection[int] | None = None) -> None:
        """Read the progress stored by now in these slots, or in all."""
        for slot, asked in self._asked.items():
            if slots is None or slot in slots:
                for held in self._progress_store.look(asked, slot):
                    self._note(slot, held)

    @property
    def counts(self) -> Counts:
        """Sum of the counts of all pieces seen so far."""
        return sum(map(self._counts_at, self._texts), Counts())

    def _note(self, slot: int, held: TopicPartition) -> None:
        at, text = (slot, held.partition), held.metadata or ""
        if self._texts.get(at) == text:
            return
        self._texts[at] = text
        # It would take long to decode a thousand partitions, most of which only say that they do not stop the run.
        found = self._ours(at, text) if '"stops_run":false' not in text else None
        if found is not None and found.stops_run and found.lease.attempt == self._job.attempt:
            self.stopped = (held.partition, found.reason)

    def _counts_at(self, at: tuple[int, int]) -> Counts:
        text = self._texts[at]
        if at not in self._counted or self._counted[at][0] != text:
            found = self._ours(at, text)
            self._counted[at] = (text, found.counts if found else Counts())
        return self._counted[at][1]

    def _ours(self, at: tuple[int, int], text: str) -> StoredProgress | None:
        try:
            return self._progress_store.of_run(text, at[1])
        except DocumentError as error:
            raise PartitionHaltedError(f"what the run has counted is not known: {error}") from error
