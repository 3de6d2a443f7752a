"""Fetches without reading ahead: the client that has fetched is gone before its messages are handled."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, Message, TopicPartition

from kpipe_engine.bounded_calls import CLOSE_SECONDS, BoundedCalls
from kpipe_engine.client_settings import ANSWER_SECONDS, Settings

FETCH_SECONDS = 10.0
LOOK_SECONDS = 0.005
# So many bytes are fetched for each record that is asked for. For one record it is one byte, for which a broker gives
# out one batch: always a whole one.
RECORD_BYTES = 1_024
_SIZES = ("fetch.message.max.bytes", "max.partition.fetch.bytes")
_ONE_FETCH = {
    # With something in its queue the client fetches no more, and looks again a second later: it is closed by then.
    "queued.min.messages": 1,
    "fetch.queue.backoff.ms": 1_000,
}


def fetch_alone(settings: Settings, start: TopicPartition, most: int) -> list[Message]:
    """Give out what one fetch finds, or nothing.

    A client that fetches ahead inflates what it fetches, in a thread of its own. Where that ends the process, it has
    nothing to do with the records that are handled meanwhile. A client that is closed does nothing any more.
    """
    smallest = min([(most - 1) * RECORD_BYTES + 1, *(int(settings[each]) for each in _SIZES if each in settings)])
    consumer = Consumer({**settings, **_ONE_FETCH, **dict.fromkeys(_SIZES, smallest)})
    calls = BoundedCalls(consumer.close)
    try:
        consumer.assign([start])
        # The client marks in its queue that it begins, before it answers this, and would wait a second for the mark.
        consumer.assignment()
        messages = consumer.consume(most, 0)
        # Asked for by name, the partition's leader is known at once.
        consumer.list_topics(start.topic, timeout=ANSWER_SECONDS)
        until = time.monotonic() + FETCH_SECONDS
        # Whoever waits in the client takes a message from it before it has looked at its queue.
        while not messages and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
            messages = consumer.consume(most, 0)
    finally:
        # As long as it is not, nobody knows what it does.
        calls.within(CLOSE_SECONDS, "the client that had fetched was closed", consumer.close)
    return messages
