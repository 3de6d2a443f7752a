"""Room for dead letters: a letter that its topic rejects stops a partition."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDeadLetter, KafkaPipeline
from airflow_provider_kpipe.exceptions import KpipeError
from airflow_provider_kpipe.kafka.topic_limits import LIMIT, POLICY, topic_settings

log = logging.getLogger(__name__)

# The most bytes that the story of a fault takes: in headers, or in JSON, where line breaks and quotes take two bytes.
STORY_BYTES = {"raw": 24_000, "envelope": 48_000}


def check_letter_room(pipeline: KafkaPipeline, source: Mapping[str, str], written_to: Mapping[str, str]) -> None:
    """Warn of dead letters that their topic would reject, or not keep.

    This is only a warning: a source that accepts such records may never get one.

    :param source: settings of the cluster that is read
    :param written_to: settings of the cluster that is written
    """
    declared, topic = pipeline.dead_letter, pipeline.source.topic
    if declared is None:
        return
    try:
        records = topic_settings(source, [topic])[topic]
        letters = topic_settings(written_to, [declared.topic])[declared.topic]
    except KpipeError as failure:
        log.info("the size limits of the topics cannot be read: %s", failure)
        return
    if "compact" in letters.get(POLICY, ""):
        log.warning(
            "%r has %s=%s and is compacted: it keeps only the newest dead letter of a key and rejects those without a "
            "key, which would stop their partition; set %s to delete",
            *(declared.topic, POLICY, letters[POLICY], POLICY),
        )
    # A mapper decides the size of its letters.
    if declared.mapper is None and LIMIT in records and LIMIT in letters:
        _compare(declared, topic, int(records[LIMIT]), int(letters[LIMIT]))


def _compare(declared: KafkaDeadLetter, source: str, largest: int, limit: int) -> None:
    """Log if the source accepts records whose dead letters the other topic rejects.

    If only the story does not fit, as with two topics at their defaults, the line is at level INFO, else at WARNING.
    """
    if limit >= letter_bytes(declared, largest):
        return
    log.log(
        logging.INFO if limit >= _bytes_inside(declared, largest) else logging.WARNING,
        "%r takes records of up to %s bytes, and %r takes dead letters of up to %s: a record of more than about %s "
        "bytes that faults would stop its partition; set %s of %r to %d",
        source,
        f"{largest:,}",
        declared.topic,
        f"{limit:,}",
        f"{_largest_that_fits(declared, limit):,}",
        LIMIT,
        declared.topic,
        letter_bytes(declared, largest),
    )


def letter_bytes(declared: KafkaDeadLetter, record_bytes: int) -> int:
    """Return how large the dead letter of a record of this size may be."""
    return _bytes_inside(declared, record_bytes) + STORY_BYTES[declared.format]


def _bytes_inside(declared: KafkaDeadLetter, record_bytes: int) -> int:
    # An envelope holds base64.
    return -(-record_bytes * 4 // 3) if declared.format == "envelope" else record_bytes


def _largest_that_fits(declared: KafkaDeadLetter, limit: int) -> int:
    room = max(0, limit - STORY_BYTES[declared.format])
    return room * 3 // 4 if declared.format == "envelope" else room
