"""Limits of topics, which a producer that writes to them is fitted to."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from confluent_kafka.admin import ConfigResource

from airflow_provider_kpipe.contract.job import BATCH_BYTES
from airflow_provider_kpipe.exceptions import KpipeError
from airflow_provider_kpipe.kafka.cluster import Cluster

log = logging.getLogger(__name__)

ANSWER_SECONDS = 10.0
LIMIT = "max.message.bytes"
POLICY = "cleanup.policy"
# The bytes that the protocol puts around a single record; librdkafka's own limit counts fewer of them than the broker.
OVERHEAD_BYTES = 512


def fit_to_topics(settings: Mapping[str, str], topics: Iterable[str]) -> dict[str, str]:
    """Add settings that keep a broker from rejecting whole batches because of their size.

    The client then rejects a record that no topic takes at once and by itself, instead of after a round trip and
    together with its neighbours. If the topics' settings may not be read, everything stays as it is.
    """
    try:
        limits = _limits(settings, topics)
    except KpipeError as failure:
        log.info("the size limits of the topics cannot be read, which only costs time: %s", failure)
        return dict(settings)
    if not limits:
        return dict(settings)
    fitted = {
        "batch.size": str(min(BATCH_BYTES, min(limits) - OVERHEAD_BYTES)),
        "message.max.bytes": str(max(limits) - OVERHEAD_BYTES),
    }
    return {**fitted, **settings}


def topic_settings(settings: Mapping[str, str], topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the settings of each topic, defaults included; raise KpipeError if they may not be read."""
    asked = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    with Cluster(settings, answer_seconds=ANSWER_SECONDS) as cluster:
        answers = cluster.ask_admin(
            lambda admin, seconds: admin.describe_configs(asked, request_timeout=seconds),
            "about the settings of topics",
        )
    return {resource.name: {name: entry.value for name, entry in found.items()} for resource, found in answers.items()}


def _limits(settings: Mapping[str, str], topics: Iterable[str]) -> list[int]:
    # librdkafka takes no limit below 1,000 bytes.
    found = topic_settings(settings, topics).values()
    return [max(1_000 + OVERHEAD_BYTES, int(each[LIMIT])) for each in found if LIMIT in each]
