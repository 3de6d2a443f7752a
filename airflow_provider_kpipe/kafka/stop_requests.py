"""Asks a running job to give its partitions up."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Consumer, TopicPartition

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.stop_request import StopRequest, stop_group_of, stop_partition_of


def request_stop(settings: Mapping[str, str], plan: Plan, attempt: str, reason: str, seconds: float = 10.0) -> None:
    """Say so to one attempt of a run; its workers look every half a second."""
    metadata = StopRequest(attempt, reason).to_text()
    consumer = Consumer({"log_level": 3, **settings, "group.id": stop_group_of(plan), "enable.auto.commit": False})
    try:
        # Where no broker answers, this says so in time; a commit would wait for a minute.
        consumer.list_topics(plan.topic, timeout=seconds)
        position = TopicPartition(plan.topic, stop_partition_of(plan), 0, metadata)
        consumer.commit(offsets=[position], asynchronous=False)
    finally:
        consumer.close()
