"""Checkpoints, as a worker reads how far they have moved the group of a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from confluent_kafka import TopicPartition

from airflow_provider_kpipe.contract.kafka_names import published_group_of
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.resuming import committed_beyond
from airflow_provider_kpipe.contract.progress.standing import Held
from kpipe_engine.client_settings import ANSWER_SECONDS, Settings, let_go, reader_of
from kpipe_engine.reading.held_offsets import held_offsets


class Checkpoints:
    """Checkpoints of some partitions of a plan, read once, at the first question: most workers never ask."""

    def __init__(self, settings: Settings, plan: Plan, partitions: Sequence[int]) -> None:
        self._settings, self._plan = settings, plan
        self._asked = [TopicPartition(plan.topic, partition) for partition in partitions]

    def reached(self, partition: int) -> Held | None:
        """Return the position to which checkpoints have moved the group beyond the plan's start, if they have."""
        return self._reached.get(partition)

    @cached_property
    def _reached(self) -> dict[int, Held]:
        group = self._plan.working_group
        found: dict[int, list[Held]] = {each.partition: [] for each in self._asked}
        for each in (*self._held(group), *self._held(published_group_of(group))):
            if each.offset >= 0:
                found[each.partition].append(Held.of(each.offset, each.metadata))
        return committed_beyond(self._plan, found)

    def _held(self, group: str) -> list[TopicPartition]:
        # Uncommitted, to avoid a wait for a checkpoint that is about to commit, or was killed over it.
        consumer = reader_of({**self._settings, "isolation.level": "read_uncommitted"}, group)
        try:
            return held_offsets(consumer, group, self._asked, ANSWER_SECONDS)
        finally:
            let_go(consumer)
