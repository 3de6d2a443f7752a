"""Commits of offsets in a transaction, which fences any other client that commits them at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, Producer, TopicPartition

from airflow_provider_kpipe.contract.connecting import connecting
from airflow_provider_kpipe.kafka.bounds import let_go, within
from airflow_provider_kpipe.kafka.broker_errors import needing
from airflow_provider_kpipe.kafka.cluster import ANSWER_SECONDS


class OffsetTransaction:
    """A context manager that gathers offsets of several groups inside the block, and commits all of them or none.

    A later transaction with the same id fences this one.
    """

    def __init__(self, settings: Mapping[str, str], transactional_id: str, topic: str) -> None:
        self._settings: dict[str, Any] = connecting({"log_level": 3, **settings})
        self._id = transactional_id
        self._producer = Producer({**self._settings, "transactional.id": transactional_id})
        self._topic = topic
        self._is_open = False

    def __enter__(self) -> Self:
        # The client finds the coordinator at once if a broker is connected by then; otherwise it looks again half a
        # second later. The first answer comes over the bootstrap address, the second from a broker.
        for _ in range(2):
            self._producer.list_topics(self._topic, timeout=ANSWER_SECONDS)
        with self._needing():
            self._producer.init_transactions(ANSWER_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        let_go(self._producer)

    def send(self, group: str, offsets: Sequence[TopicPartition]) -> None:
        """Gather offsets of a group."""
        if not offsets:
            return
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open = True
        consumer = Consumer({**self._settings, "group.id": group, "enable.auto.commit": False})
        try:
            metadata = consumer.consumer_group_metadata()
        finally:
            let_go(consumer)
        # The client keeps no time bound of its own if the group's coordinator is down.
        with self._needing(group=group):
            within(ANSWER_SECONDS, lambda: self._producer.send_offsets_to_transaction(list(offsets), metadata))

    def commit(self) -> None:
        """Commit what was gathered, if anything was."""
        if self._is_open:
            with self._needing():
                within(ANSWER_SECONDS, self._producer.commit_transaction)
            self._is_open = False

    def _needing(self, **names: str) -> AbstractContextManager[None]:
        return needing(transactional_id=self._id, topic=self._topic, **names)
