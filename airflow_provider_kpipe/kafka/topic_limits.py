"""Fits a producer to the topics it writes to, by what they are set to."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from airflow_provider_kpipe.contract.job import BATCH_BYTES

log = logging.getLogger(__name__)

ANSWER_SECONDS = 10.0
LIMIT = "max.message.bytes"
# What the protocol puts around a single record; librdkafka's own limit counts less of it than the broker.
OVERHEAD_BYTES = 512


def fit_to_topics(settings: Mapping[str, str], topics: Iterable[str]) -> dict[str, str]:
    """Add what keeps a broker from refusing whole batches because of their size.

    A record that no topic takes is then refused at once and by itself, instead of after a round trip and
    together with its neighbours. Where the topics' settings may not be read, everything stays as it is.
    """
    try:
        limits = _limits(settings, topics)
    except KafkaException as failure:
        log.info("the size limits of the topics cannot be read, which only costs time: %s", failure.args[0].str())
        return dict(settings)
    if not limits:
        return dict(settings)
    fitted = {
        "batch.size": str(min(BATCH_BYTES, min(limits) - OVERHEAD_BYTES)),
        "message.max.bytes": str(max(limits) - OVERHEAD_BYTES),
    }
    return {**fitted, **settings}


def topic_settings(settings: Mapping[str, str], topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """What each topic is set to, defaults included; raises where that may not be read."""
    admin = AdminClient({"log_level": 3, **settings})
    asked = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    answers = admin.describe_configs(asked, request_timeout=ANSWER_SECONDS)
    return {
        resource.name: {name: entry.value for name, entry in future.result().items()}
        for resource, future in answers.items()
    }


def _limits(settings: Mapping[str, str], topics: Iterable[str]) -> list[int]:
    # librdkafka takes no limit below 1,000 bytes.
    found = topic_settings(settings, topics).values()
    return [max(1_000 + OVERHEAD_BYTES, int(each[LIMIT])) for each in found if LIMIT in each]
