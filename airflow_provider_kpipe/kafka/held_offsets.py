"""The offsets that a group holds, read by a consumer that never joins it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

FIRST_WAIT_SECONDS = 0.5
_NOT_FOUND_YET = (KafkaError._TIMED_OUT, KafkaError._WAIT_COORD)


def held_offsets(consumer: Consumer, asked: Sequence[TopicPartition], seconds: float) -> list[TopicPartition]:
    """Read the offsets of the consumer's group; raise the error of a partition as that of the whole call.

    A client without the permission to find the group's coordinator keeps asking, and reports the error only in its
    poll. So this waits for the answer for longer and longer, and polls in between.
    """
    until, wait = time.monotonic() + seconds, FIRST_WAIT_SECONDS
    while True:
        left = max(0.0, until - time.monotonic())
        try:
            answers = consumer.committed(list(asked), timeout=min(wait, left))
            break
        except KafkaException as failure:
            told = consumer.poll(0)
            error = told.error() if told else None
            if error is not None:
                raise KafkaException(error) from None
            if failure.args[0].code() not in _NOT_FOUND_YET or wait >= left:
                raise
        wait *= 2
    for answer in answers:
        if answer.error is not None:
            raise KafkaException(answer.error)
    return answers
