"""Reader of one range of a topic into this process, for ranges that are small enough."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from airflow_provider_kpipe.contract.kafka_names import READER_GROUP
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.kafka.bounds import let_go
from airflow_provider_kpipe.kafka.broker_errors import needing, passes
from airflow_provider_kpipe.kafka.cluster import Cluster

READ_RECORDS = 10_000
READ_SECONDS = 0.1
STALL_SECONDS = 60.0


def read_range(settings: Mapping[str, str], topic: str, planned: PartitionRange) -> Iterator[Message]:
    """Yield the committed records in order. Positions show the end, since markers and compaction leave holes."""
    if not len(planned):
        return
    cluster = Cluster({"fetch.wait.max.ms": "50", **settings}, answer_seconds=STALL_SECONDS)
    consumer = cluster.open_consumer(
        {
            # The consumer never joins the group, and stores nothing in it. Only redrives read like this, so the name
            # is one of theirs: the connection's user needs the permission to look for the group's coordinator.
            "group.id": READER_GROUP,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    try:
        consumer.list_topics(topic, timeout=STALL_SECONDS)
        cluster.note_answer()
        consumer.assign([TopicPartition(topic, planned.partition, planned.start)])
        with needing(group=READER_GROUP, topic=topic):
            yield from _read(consumer, topic, planned)
    except KafkaException as failure:
        about = f"for the records of partition {planned.partition} of {topic!r} from {planned.start}"
        raise cluster.failure(failure.args[0], about) from failure
    finally:
        let_go(consumer)


def _read(consumer: Consumer, topic: str, planned: PartitionRange) -> Iterator[Message]:
    asked = [TopicPartition(topic, planned.partition)]
    heard_at = time.monotonic()
    while consumer.position(asked)[0].offset < planned.end:
        batch = consumer.consume(READ_RECORDS, READ_SECONDS)
        for message in batch:
            error = message.error()
            if error is None and (message.offset() or 0) < planned.end:
                yield message
            elif error is None or error.code() == KafkaError._PARTITION_EOF:
                if (message.offset() or 0) >= planned.end:
                    return
            elif not (error.retriable() or passes(error)):
                raise KafkaException(error)
        if batch:
            heard_at = time.monotonic()
        elif time.monotonic() - heard_at > STALL_SECONDS:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
