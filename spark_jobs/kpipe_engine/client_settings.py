"""Settings of the Kafka clients that a worker opens, each with its reason."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer

from airflow_provider_kpipe.contract.connecting import connecting
from airflow_provider_kpipe.contract.job import BATCH_BYTES
from airflow_provider_kpipe.contract.pipeline.declaration import TRANSACTION_PER_CHUNK, KafkaDestination, KafkaPipeline
from airflow_provider_kpipe.contract.plan import Plan
from kpipe_engine.bounded_calls import close_all

Settings = Mapping[str, Any]

log = logging.getLogger("kpipe.kafka")

ANSWER_SECONDS = 60.0
QUEUE_KBYTES = 48 * 1024
# Long enough to outlast a broker that stops for a while, short enough to let readers continue after a crash.
SHORTEST_TRANSACTION_TIMEOUT_MS = 60_000


def consumer_settings(settings: Settings, plan: Plan, slot: int) -> dict[str, Any]:
    return {
        **connecting({}),
        # At the end of its range, a reader turns to the next one only when its pending fetch returns: an empty fetch
        # should return soon.
        "fetch.wait.max.ms": 5,
        # By default a full local queue stops fetching for a whole second, longer than it takes to empty it.
        "fetch.queue.backoff.ms": 5,
        # Enough for some tens of milliseconds of work. More records would only fall out of the processor's caches.
        "queued.min.messages": 20_000,
        # Bounds a worker's memory, whatever the size of its range.
        "queued.max.messages.kbytes": QUEUE_KBYTES,
        **settings,
        # The group holds the stored offsets. The consumer never joins it.
        "group.id": plan.progress_group(slot),
        "isolation.level": plan.isolation_level,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        # Any other value would silently read from elsewhere, such as the beginning, if the start has left the topic.
        "auto.offset.reset": "error",
    }


def group_reader(settings: Settings, plan: Plan, slot: int) -> Consumer:
    """Return a consumer that reads the progress of a slot's pieces; it never joins their group."""
    return reader_of(settings, plan.progress_group(slot))


def reader_of(settings: Settings, group: str) -> Consumer:
    """Return a consumer that reads the offsets of a group, and never joins it."""
    return Consumer({**connecting({"log_level": 3, **settings}), "group.id": group, "enable.auto.commit": False})


def let_go(*clients: Consumer | Producer) -> None:
    """Close idle clients, because a worker process outlives its task. A client that does not close is abandoned."""
    close_all(*(each.close for each in clients))


def producer_settings(settings: Settings, destination: KafkaDestination) -> dict[str, Any]:
    chosen = {
        **connecting({}),
        # Only the end of a chunk waits for a batch, and it sends the batch at once. With slow segments, 20 ms made so
        # many small requests that a fifth of the CPU went to the broker; now it is an eighth.
        "linger.ms": 100,
        "batch.size": BATCH_BYTES,
        "queue.buffering.max.messages": 100_000,
        "queue.buffering.max.kbytes": QUEUE_KBYTES,
        # A missing topic that a segment has chosen may still appear within this time. Each chunk with such a record
        # waits for it, up to three times; the client's own 30 s are meant for clusters of another size.
        "topic.metadata.propagation.max.ms": 5_000,
        **settings,
    }
    return {
        **chosen,
        # A record larger than the whole queue could never be written.
        "queue.buffering.max.kbytes": max(int(chosen["queue.buffering.max.kbytes"]), _kbytes_of_largest(chosen)),
        "partitioner": destination.partitioner,
        "compression.type": destination.compression,
        "acks": "all",
        "enable.idempotence": True,
        "delivery.report.only.error": True,
        # Without this handler, the client raises a fatal error out of any callback that runs at that moment.
        "error_cb": log_error,
    }


def _kbytes_of_largest(settings: Settings) -> int:
    return int(settings.get("message.max.bytes", 0)) // 1024 + 1


def log_error(error: KafkaError) -> None:
    """Log a connection's error. An error that matters is also raised by the call that it makes fail."""
    log.debug("%s", error)


def transaction_timeout_ms(pipeline: KafkaPipeline) -> int:
    if pipeline.transaction_seconds is not None:
        return int(pipeline.transaction_seconds * 1000)
    return max(SHORTEST_TRANSACTION_TIMEOUT_MS, int(pipeline.chunk_seconds * 1000 * TRANSACTION_PER_CHUNK))
