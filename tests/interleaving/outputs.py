"""Topics for the outputs of runs, which serve one schedule after the other."""

from __future__ import annotations

import functools
import uuid

from confluent_kafka import Consumer, TopicPartition

from airflow_provider_kpipe.sandbox import create_topics
from tests.interleaving.drain import MOST_LAST_RUNS
from tests.interleaving.schedule import MOST_RUNS


@functools.cache
def _made_topics(bootstrap: str) -> tuple[str, ...]:
    names = tuple(f"interleaved-{uuid.uuid4().hex[:8]}-{number}" for number in range(MOST_RUNS + MOST_LAST_RUNS))
    create_topics(bootstrap, *names)
    return names


def output_topics(bootstrap: str) -> dict[str, int]:
    """Topics for the outputs of one run each, and where they end."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "tests-never-commit"})
    try:
        return {
            each: consumer.get_watermark_offsets(TopicPartition(each, 0), timeout=30)[1]
            for each in _made_topics(bootstrap)
        }
    finally:
        consumer.close()
