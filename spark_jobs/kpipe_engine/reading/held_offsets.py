"""The offsets of a group, read by a consumer that never joins it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kpipe_engine.errors import needing

FIRST_WAIT_SECONDS = 0.5
_NOT_FOUND_YET = (KafkaError._TIMED_OUT, KafkaError._WAIT_COORD)
# A coordinator that has just started, or moved, returns one of these at once.
_MOVING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
AGAIN_SECONDS = 0.1


def held_offsets(
    consumer: Consumer, group: str, asked: Sequence[TopicPartition], seconds: float
) -> list[TopicPartition]:
    """Read the offsets of the consumer's group; raise an error of one partition as an error of all.

    A client that may not find the group's coordinator keeps asking, and reports that only as an event: each try waits
    longer than the last, and events are read in between. A coordinator that moves is asked again until it has settled.
    """
    topic = asked[0].topic if asked else ""
    # If the consumer reads records, the event may be one of them, and is gone once it is taken. A consumer that reads
    # is therefore asked once: after a failure, a new consumer reads the record again.
    reads = bool(consumer.assignment())
    until, wait = time.monotonic() + seconds, seconds if reads else FIRST_WAIT_SECONDS
    with needing(group=group, topic=topic):
        while True:
            left = max(0.0, until - time.monotonic())
            try:
                answers = consumer.committed(list(asked), timeout=min(wait, left))
                break
            except KafkaException as failure:
                if left and failure.args[0].code() in _MOVING:
                    time.sleep(min(AGAIN_SECONDS, left))
                    continue
                for event in consumer.consume(1, 0):
                    error = event.error()
                    # The end of a partition's log says nothing about the group.
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        raise KafkaException(error) from failure
                if reads or failure.args[0].code() not in _NOT_FOUND_YET or wait >= left:
                    raise
            wait *= 2
        for answer in answers:
            if answer.error is not None:
                raise KafkaException(answer.error)
        return answers
