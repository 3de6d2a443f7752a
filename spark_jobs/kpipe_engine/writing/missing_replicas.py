"""Report on topics that have lost replicas, if brokers accept no writes to them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.contract.connecting import connecting
from kpipe_engine.client_settings import Settings
from kpipe_engine.errors import ChunkFailedError, is_silence, reason_of

ASK_SECONDS = 5.0


def reason_with_replicas(stop: Exception, settings: Settings, written: Sequence[str]) -> str:
    """Say why a partition stops, and which of the topics that it writes lack replicas, if that may be the cause.

    The client retries a write that a broker rejects for lack of replicas, and in the end reports only a timeout.
    """
    reason = reason_of(stop)
    if not _may_be_behind(stop):
        return reason
    found = []
    # If the cluster ceases to answer, the topics that it has answered about are named all the same.
    with contextlib.suppress(KafkaException):
        for each in _missing(settings, written):
            found.append(each)
    return f"{', '.join(found)}, and may take nothing until that is fixed: {reason}" if found else reason


def is_well(settings: Settings, written: Sequence[str]) -> bool:
    """Tell whether the cluster answers, and no topic lacks a leader or a replica."""
    try:
        return not any(_missing(settings, written))
    except KafkaException:
        return False


def _may_be_behind(stop: Exception) -> bool:
    if is_silence(stop) or isinstance(stop.__cause__, ChunkFailedError):
        return True
    # A transaction ends only after each topic in it has taken its marker.
    return isinstance(stop, KafkaException) and stop.args[0].code() == KafkaError.CONCURRENT_TRANSACTIONS


def _missing(settings: Settings, written: Sequence[str]) -> Iterator[str]:
    """Describe one partition of each topic that lacks a leader or a replica."""
    until = time.monotonic() + ASK_SECONDS
    admin = AdminClient(connecting({"log_level": 3, **settings}))
    for topic in written:
        left = max(0.0, until - time.monotonic())
        partitions = admin.list_topics(topic, timeout=left).topics[topic].partitions
        for number, each in sorted(partitions.items()):
            if each.leader < 0:
                yield f"topic {topic!r} has no leader in partition {number}"
                break
            if len(each.isrs) < len(each.replicas):
                found = f"{len(each.isrs)} of {len(each.replicas)} replicas"
                yield f"topic {topic!r} has {found} in sync in partition {number}"
                break
