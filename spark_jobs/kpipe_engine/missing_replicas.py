"""Tells people of topics that have lost replicas, where nobody takes what is written to them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.contract.connecting import connecting
from kpipe_engine.clients import Settings
from kpipe_engine.errors import ChunkFailedError, is_silence, reason_of

ASK_SECONDS = 5.0


def reason_with_replicas(stop: Exception, settings: Settings, written: Sequence[str]) -> str:
    """Say why a partition stops, and which of the topics that it writes lack replicas, where that may be behind it.

    The client tries again what a broker refuses for that, and says in the end no more than that time is over.
    """
    reason = reason_of(stop)
    missing = ", ".join(_missing(settings, written)) if _may_be_behind(stop) else ""
    return f"{missing}, and may take nothing until that is mended: {reason}" if missing else reason


def _may_be_behind(stop: Exception) -> bool:
    if is_silence(stop) or isinstance(stop.__cause__, ChunkFailedError):
        return True
    # Nor does a transaction end before each topic in it has taken its marker.
    return isinstance(stop, KafkaException) and stop.args[0].code() == KafkaError.CONCURRENT_TRANSACTIONS


def _missing(settings: Settings, written: Sequence[str]) -> Iterator[str]:
    """One partition of each topic, as long as the cluster answers."""
    until = time.monotonic() + ASK_SECONDS
    admin = AdminClient(connecting({"log_level": 3, **settings}))
    for topic in written:
        try:
            left = max(0.0, until - time.monotonic())
            partitions = admin.list_topics(topic, timeout=left).topics[topic].partitions
        except KafkaException:
            # Then what has stopped the partition is all that is known.
            return
        for number, each in sorted(partitions.items()):
            if each.leader < 0:
                yield f"topic {topic!r} has no leader in partition {number}"
                break
            if len(each.isrs) < len(each.replicas):
                found = f"{len(each.isrs)} of {len(each.replicas)} replicas"
                yield f"topic {topic!r} has {found} in sync in partition {number}"
                break
