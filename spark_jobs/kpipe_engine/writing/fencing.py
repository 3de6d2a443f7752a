"""Fencing of other writers by their transactional ids."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Producer

from airflow_provider_kpipe.contract.connecting import connecting
from kpipe_engine.client_settings import ANSWER_SECONDS, Settings, let_go
from kpipe_engine.errors import needing


def fence_writers(settings: Settings, transactional_ids: Iterable[str]) -> None:
    """Fence the producers with these ids: transactions that they have left open are aborted."""
    for transactional_id in transactional_ids:
        producer = Producer({**connecting({"log_level": 3, **settings}), "transactional.id": transactional_id})
        try:
            with needing(transactional_id=transactional_id):
                producer.init_transactions(ANSWER_SECONDS)
        finally:
            let_go(producer)
