"""Question to leaders whether they know the records that lay before an offset."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, TopicPartition

from airflow_provider_kpipe.contract.kafka_names import progress_group_of
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.kafka.bounds import let_go
from airflow_provider_kpipe.kafka.cluster import Cluster

LISTEN_SECONDS = 0.1
# Fetch as little as possible: the records are not needed.
_LITTLE = {"fetch.wait.max.ms": 10, "fetch.message.max.bytes": 1_000, "queued.max.messages.kbytes": 1_024}


def truncated(cluster: Cluster, group: str, topic: str, asked: Mapping[int, tuple[int, int]]) -> dict[int, str]:
    """Return the partitions that were truncated: their leader knows no record of that epoch up to the offset.

    A consumer that begins at an offset with an epoch makes the client ask the leader for the end of that epoch. It asks
    only once: a leader that does not answer in time is an error.

    :param asked: offset and leader epoch, by partition
    """
    if not asked:
        return {}
    consumer = cluster.open_consumer(
        {
            **_LITTLE,
            "group.id": progress_group_of(group),
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # Behind an open transaction, a reader of committed records gets no answer.
            "isolation.level": "read_uncommitted",
            "auto.offset.reset": "error",
        }
    )
    try:
        # Assign before the client knows the topic: it asks only when it learns of a leader.
        consumer.assign(
            [
                TopicPartition(topic, partition, offset, leader_epoch=epoch)
                for partition, (offset, epoch) in asked.items()
            ]
        )
        found, silent = _answers(consumer, set(asked), cluster.answer_seconds)
    finally:
        let_go(consumer)
    if silent and not found:
        partitions = ", ".join(map(str, sorted(silent)))
        about = f"whether partitions {partitions} of {topic!r} still hold what lay before the group's offsets"
        raise cluster.failure(KafkaError(KafkaError._TIMED_OUT), about)
    return found


def refuse_truncated(cluster: Cluster, group: str, topic: str, asked: Mapping[int, tuple[int, int]]) -> None:
    """Raise PlanError for the first partition that was truncated, if there is one."""
    for partition, lost in truncated(cluster, group, topic, asked).items():
        raise PlanError(
            f"partition {partition} of {topic!r} was truncated by an unclean election: what was read for the group "
            f"ends at {asked[partition][0]}, and the leader that is there now does not know what lay before ({lost}). "
            "Records may be lost, and others may have taken their offsets: reset the group to where it should resume"
        )


def _answers(consumer: Consumer, silent: set[int], seconds: float) -> tuple[dict[int, str], set[int]]:
    """Return the errors of the truncated partitions, and the partitions that got no answer in time."""
    found: dict[int, str] = {}
    until = time.monotonic() + seconds
    while silent and time.monotonic() < until:
        for message in consumer.consume(1_000, LISTEN_SECONDS):
            error, partition = message.error(), message.partition()
            if partition is None:
                continue
            if error is not None and _is_truncation(error):
                found[partition] = error.str()
            silent.discard(partition)
    return found, silent


def _is_truncation(error: KafkaError) -> bool:
    """Tell whether the log was truncated: an offset that has left the log has the same code with another text."""
    return error.code() == KafkaError._LOG_TRUNCATION or "truncation" in error.str()
