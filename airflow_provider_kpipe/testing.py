"""Records and contexts for the tests of segments, as the engine would pass them."""

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
    """Make a record as if it was read from this topic, partition and offset."""
    message = Message(
        topic=topic,
        partition=partition,
        offset=offset,
        key=key,
        value=value,
        headers=list(headers),
        timestamp=(TIMESTAMP_CREATE_TIME, timestamp),
    )
    # The types say that a consumed message has coordinates, and headers in a list.
    return Record(cast("SourceMessage", message), Origin(RUN_KEY))


def context_of(topic: str = "tests", partition: int = 0) -> SegmentContext:
    """Make the context that `open` of a segment gets; its `counters` show the counts."""
    return SegmentContext(RUN_KEY, topic, partition, logging.getLogger("kpipe.segments"))
