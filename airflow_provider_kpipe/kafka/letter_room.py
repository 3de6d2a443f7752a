"""Compares the sizes that a source and its dead-letter topic take: a letter that does not fit stops a partition."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from airflow_provider_kpipe.contract.pipeline import KafkaDeadLetter, KafkaPipeline
from airflow_provider_kpipe.exceptions import KpipeError
from airflow_provider_kpipe.kafka.topic_limits import LIMIT, topic_settings

log = logging.getLogger(__name__)

# What the story of a fault takes at most, in headers or in JSON, where line breaks and quotes take two bytes.
STORY_BYTES = {"raw": 24_000, "envelope": 48_000}


def check_letter_room(pipeline: KafkaPipeline, source: Mapping[str, str], written_to: Mapping[str, str]) -> None:
    """Tell what the limits of both topics allow and one of them refuses.

    Only a warning: that a topic takes such records does not mean that they come. Where it is only the story that does
    not fit, as with two topics at their defaults, it is no more than a line of the log.

    :param source: settings of the cluster that is read
    :param written_to: settings of the cluster that is written
    """
    declared = pipeline.dead_letter
    # A mapper's letters have whatever size it gives them.
    if declared is None or declared.mapper is not None:
        return
    try:
        largest = _limit(source, pipeline.source.topic)
        limit = _limit(written_to, declared.topic)
    except KpipeError as failure:
        log.info("the size limits of the topics cannot be read: %s", failure)
        return
    if largest is None or limit is None or limit >= letter_bytes(declared, largest):
        return
    log.log(
        logging.INFO if limit >= _bytes_inside(declared, largest) else logging.WARNING,
        "%r takes records of up to %s bytes, and %r takes dead letters of up to %s: a record of more than about %s "
        "bytes that faults would stop its partition; set %s of %r to %d",
        pipeline.source.topic,
        f"{largest:,}",
        declared.topic,
        f"{limit:,}",
        f"{_largest_that_fits(declared, limit):,}",
        LIMIT,
        declared.topic,
        letter_bytes(declared, largest),
    )


def letter_bytes(declared: KafkaDeadLetter, record_bytes: int) -> int:
    """How large the dead letter of such a record may be."""
    return _bytes_inside(declared, record_bytes) + STORY_BYTES[declared.format]


def _bytes_inside(declared: KafkaDeadLetter, record_bytes: int) -> int:
    # An envelope holds base64.
    return -(-record_bytes * 4 // 3) if declared.format == "envelope" else record_bytes


def _largest_that_fits(declared: KafkaDeadLetter, limit: int) -> int:
    room = max(0, limit - STORY_BYTES[declared.format])
    return room * 3 // 4 if declared.format == "envelope" else room


def _limit(settings: Mapping[str, str], topic: str) -> int | None:
    found = topic_settings(settings, [topic])[topic].get(LIMIT)
    return None if found is None else int(found)
