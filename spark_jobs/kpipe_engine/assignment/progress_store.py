"""Stored progress: that of all workers is read and decoded, and that of this worker is encoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.details import fit, with_details
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import StoredProgress
from airflow_provider_kpipe.contract.progress.standing import Stored
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.client_settings import ANSWER_SECONDS, Settings, group_reader, let_go
from kpipe_engine.reading.details_group import DetailsGroup
from kpipe_engine.reading.held_offsets import held_offsets
from kpipe_engine.reading.shared_consumer import SharedConsumer


class Entries(NamedTuple):
    """Offsets that are stored together, with the progress beside them, and the details that did not fit there."""

    progress: list[TopicPartition]
    details: list[TopicPartition]


class ProgressStore:
    """Progress of a run, beside the offsets of its groups: each slot of pieces has a group of its own."""

    def __init__(
        self, plan: Plan, lease: Lease, slot: int, shared_consumer: SharedConsumer, settings: Settings
    ) -> None:
        self._plan, self._lease, self._slot = plan, lease, slot
        self._shared_consumer, self._settings = shared_consumer, settings
        self._readers: dict[int, Consumer] = {}

    def held(self, partitions: Sequence[int], slot: int) -> dict[int, TopicPartition]:
        """Read the offsets that the group of a slot holds, by partition."""
        asked = [TopicPartition(self._plan.topic, partition) for partition in partitions]
        return {each.partition: each for each in self._held(asked, slot)}

    def _held(self, asked: list[TopicPartition], slot: int) -> list[TopicPartition]:
        if slot == self._slot:
            return self._shared_consumer.held(asked)
        reader = group_reader(self._settings, self._plan, slot)
        try:
            return held_offsets(reader, self._plan.progress_group(slot), asked, ANSWER_SECONDS)
        finally:
            let_go(reader)

    def look(self, asked: list[TopicPartition], slot: int) -> list[TopicPartition]:
        """Read what the group of a slot holds, with a reader that stays open for further looks."""
        if slot == self._slot:
            return self._shared_consumer.held(asked)
        if slot not in self._readers:
            self._readers[slot] = group_reader(self._settings, self._plan, slot)
        return held_offsets(self._readers[slot], self._plan.progress_group(slot), asked, ANSWER_SECONDS)

    def of_run(self, text: str, partition: int) -> StoredProgress | None:
        """Return the progress in a text beside an offset if this run has stored it, in any of its attempts."""
        found = StoredProgress.read_text(text, f"partition {partition}")
        return found if found is not None and found.is_of(self._plan.run_key, self._plan.number) else None

    def stored(self, held: TopicPartition, slot: int) -> Stored | None:
        """Return the progress beside an offset, with the details that did not fit there."""
        found = stored_beside(held)
        if found is None or not found.progress.is_detailed:
            return found
        details = DetailsGroup(self._settings, self._plan, slot).read(held.partition)
        return replace(found, progress=with_details(found.progress, details))

    def pieces(self, partition: int, count: int) -> list[Stored]:
        """Read the progress of the pieces of a partition beyond the first, by any run."""
        found = (self.stored(self.held([partition], slot)[partition], slot) for slot in range(1, count))
        return [each for each in found if each is not None]

    def entries(self, states: Iterable[RangeState]) -> Entries:
        """Encode the progress of the ranges: each with its offset, and our lease on it."""
        entries = Entries([], [])
        for state in states:
            place = self._plan.topic, state.partition, state.handled
            fitted = fit(state.to_stored_progress(self._plan, self._lease), self._plan.metadata_bytes)
            epoch = state.range.epoch_at(state.handled)
            entries.progress.append(TopicPartition(*place, fitted.progress, leader_epoch=epoch))
            if fitted.details is not None:
                entries.details.append(TopicPartition(*place, fitted.details))
        return entries

    def close(self) -> None:
        let_go(*self._readers.values())


def stored_beside(held: TopicPartition) -> Stored | None:
    """Return the progress beside an offset, without the details that did not fit there."""
    progress = StoredProgress.read_text(held.metadata)
    return Stored(held.offset, progress) if progress is not None and held.offset >= 0 else None
