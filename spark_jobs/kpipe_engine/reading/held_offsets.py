"""Reads what a group holds, as a consumer that never joins it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kpipe_engine.errors import needing

FIRST_WAIT_SECONDS = 0.5
_NOT_FOUND_YET = (KafkaError._TIMED_OUT, KafkaError._WAIT_COORD)
# A coordinator that has just come up, or moved, says so at once.
_MOVING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
AGAIN_SECONDS = 0.1


def held_offsets(
    consumer: Consumer, group: str, asked: Sequence[TopicPartition], seconds: float
) -> list[TopicPartition]:
    """Read the offsets of the consumer's group; an error of a partition is raised as one of all.

    A client that may not find the group's coordinator goes on asking, and says so only beside: it is asked for longer
    and longer, and listened to in between. A coordinator that moves is asked again until it has settled.
    """
    topic = asked[0].topic if asked else ""
    # What comes beside may be a record where the consumer reads some: listened to, it is gone. Whoever reads is asked
    # once: after a failure the consumer is a new one, and reads it again.
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
                    # That its log has ended says nothing of the group.
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        raise KafkaException(error) from failure
                if reads or failure.args[0].code() not in _NOT_FOUND_YET or wait >= left:
                    raise
            wait *= 2
        for answer in answers:
            if answer.error is not None:
                raise KafkaException(answer.error)
        return answers
