"""Requests to a running job to yield its partitions."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from airflow_provider_kpipe.contract.connecting import connecting
from airflow_provider_kpipe.contract.kafka_names import stop_group_of
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.stop_request import StopRequest, stop_partition_of
from airflow_provider_kpipe.kafka.bounds import let_go, within


def request_stop(settings: Mapping[str, str], plan: Plan, attempt: int, reason: str, seconds: float = 10.0) -> None:
    """Ask one attempt of a run to stop; its workers look for the request every half a second."""
    common = connecting({"log_level": 3, **settings})
    consumer = Consumer({**common, "group.id": stop_group_of(plan.working_group), "enable.auto.commit": False})
    position = TopicPartition(plan.topic, stop_partition_of(plan), attempt, StopRequest(attempt, reason).to_text())
    try:
        answers = within(seconds, lambda: consumer.commit(offsets=[position], asynchronous=False))
    finally:
        let_go(consumer)
    for answer in answers:
        if answer.error is not None:
            raise KafkaException(answer.error)
