"""Details of a worker that do not fit beside a stored offset, and have a group of their own."""

from __future__ import annotations

from confluent_kafka import TopicPartition

from airflow_provider_kpipe.contract.kafka_names import details_group_of
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.details import Details
from kpipe_engine.bounded_calls import BoundedCalls
from kpipe_engine.client_settings import ANSWER_SECONDS, Settings, let_go, reader_of
from kpipe_engine.errors import ChunkFailedError, needing
from kpipe_engine.reading.held_offsets import held_offsets


class DetailsGroup:
    """A group beside the progress group of a slot. Few runs need it, so each call opens a client of its own."""

    def __init__(self, settings: Settings, plan: Plan, slot: int) -> None:
        self._settings = settings
        self._group, self._topic = details_group_of(plan.progress_group(slot)), plan.topic

    def read(self, partition: int) -> Details | None:
        consumer = reader_of(self._settings, self._group)
        try:
            (held,) = held_offsets(consumer, self._group, [TopicPartition(self._topic, partition)], ANSWER_SECONDS)
        finally:
            let_go(consumer)
        return Details.read_text(held.metadata)

    def commit(self, positions: list[TopicPartition], seconds: float) -> None:
        consumer = reader_of(self._settings, self._group)
        calls = BoundedCalls(consumer.close)

        def commit() -> list[TopicPartition]:
            return consumer.commit(offsets=positions, asynchronous=False)

        try:
            with needing(group=self._group, topic=self._topic):
                answers = calls.within(seconds, "the chunk was stored", commit)
        finally:
            calls.close()
        for answer in answers:
            if answer.error is not None:
                raise ChunkFailedError(f"partition {answer.partition} could not be stored: {answer.error}")

    def metadata(self) -> object:
        """Return the group's metadata in the form that a transaction needs."""
        consumer = reader_of(self._settings, self._group)
        try:
            return consumer.consumer_group_metadata()
        finally:
            let_go(consumer)
