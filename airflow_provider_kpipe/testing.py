"""For the tests of segments: what the engine would give them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import cast

from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from airflow_provider_kpipe.record import Header, Origin, Record, SourceMessage
from airflow_provider_kpipe.segments import SegmentContext

RUN_KEY = "test"


def record_of(
    value: bytes | None,
    key: bytes | None = None,
    headers: Iterable[Header] = (),
    *,
    timestamp: int = 0,
    topic: str = "tests",
    partition: int = 0,
    offset: int = 0,
) -> Record:
    """A record as it was read from there."""
    message = Message(
        topic=topic,
        partition=partition,
        offset=offset,
        key=key,
        value=value,
        headers=list(headers),
        timestamp=(TIMESTAMP_CREATE_TIME, timestamp),
    )
    # What was consumed is known to have coordinates, and headers in a list.
    return Record(cast("SourceMessage", message), Origin(RUN_KEY))


def context_of(topic: str = "tests", partition: int = 0) -> SegmentContext:
    """What `open` of a segment gets; its `counters` show what was counted."""
    return SegmentContext(RUN_KEY, topic, partition, logging.getLogger("kpipe.segments"))
