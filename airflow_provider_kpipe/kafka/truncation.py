"""Asks leaders whether they know the records that lay before an offset."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, TopicPartition

from airflow_provider_kpipe.contract.connecting import connecting
from airflow_provider_kpipe.contract.kafka_names import progress_group_of
from airflow_provider_kpipe.kafka.bounds import let_go

ANSWER_SECONDS = 10.0
# The records are not wanted.
_LITTLE = {"fetch.wait.max.ms": 10, "fetch.message.max.bytes": 1_000, "queued.max.messages.kbytes": 1_024}


def truncated(
    settings: Mapping[str, str], group: str, topic: str, asked: Mapping[int, tuple[int, int]]
) -> dict[int, str]:
    """Say for which partitions the leader knows no record of that epoch up to the offset: they were truncated.

    A consumer that begins at an offset with an epoch has the client ask the leader for the end of that epoch. A
    partition that answers nothing in time counts as whole: the worker that reads it asks once more.

    :param asked: offset and leader epoch, by partition
    """
    if not asked:
        return {}
    found: dict[int, str] = {}
    consumer = Consumer(
        {
            **connecting({"log_level": 3, **_LITTLE, **settings}),
            "group.id": progress_group_of(group),
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    try:
        # Before the client knows the topic: it asks only when it learns of a leader.
        consumer.assign(
            [
                TopicPartition(topic, partition, offset, leader_epoch=epoch)
                for partition, (offset, epoch) in asked.items()
            ]
        )
        waiting, until = set(asked), time.monotonic() + ANSWER_SECONDS
        while waiting and time.monotonic() < until:
            for message in consumer.consume(1_000, 0.1):
                error, partition = message.error(), message.partition()
                if partition is None:
                    continue
                if error is not None and _is_truncation(error):
                    found[partition] = error.str()
                waiting.discard(partition)
    finally:
        let_go(consumer)
    return found


def _is_truncation(error: KafkaError) -> bool:
    """Tell it from an offset that has left the log, which has the code of the same reset and another text."""
    return error.code() == KafkaError._LOG_TRUNCATION or "truncation" in error.str()
