"""Silence: a cluster at which no broker answers, as opposed to one at which some do."""

from __future__ import annotations

from confluent_kafka import KafkaException, Producer

from airflow_provider_kpipe.contract.connecting import connecting
from airflow_provider_kpipe.contract.job import KafkaSettings
from kpipe_engine.client_settings import Settings, let_go, log_error

ASK_SECONDS = 10.0


def silent_clusters(kafka: KafkaSettings) -> list[str]:
    """Return the addresses of a job's clusters that do not answer new clients, such as its next worker would open.

    A broker that is gone takes only its own partitions with it.
    """
    clusters = {_address(each): each for each in (kafka.source, kafka.destination)}
    return [address for address, settings in clusters.items() if not _answers(settings)]


def _answers(settings: Settings) -> bool:
    producer = Producer({**connecting({"log_level": 3, **settings}), "error_cb": log_error})
    try:
        producer.list_topics(timeout=ASK_SECONDS)
    except KafkaException:
        return False
    finally:
        let_go(producer)
    return True


def _address(settings: Settings) -> str:
    return str(settings.get("bootstrap.servers") or settings.get("metadata.broker.list") or "?")
