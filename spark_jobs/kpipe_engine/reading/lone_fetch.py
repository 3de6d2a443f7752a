"""Fetch without reading ahead: the client that has fetched is closed before its messages are handled."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, Message, TopicPartition

from kpipe_engine.bounded_calls import CLOSE_SECONDS, BoundedCalls
from kpipe_engine.client_settings import ANSWER_SECONDS, Settings

FETCH_SECONDS = 10.0
LOOK_SECONDS = 0.005
# Bytes to fetch for each further record. For the first record it is one byte, for which a broker returns one batch, and
# always a whole batch.
RECORD_BYTES = 1_024
_SIZES = ("fetch.message.max.bytes", "max.partition.fetch.bytes")
_ONE_FETCH = {
    # With a message in its queue, the client stops fetching, and looks again a second later: it is closed by then.
    "queued.min.messages": 1,
    "fetch.queue.backoff.ms": 1_000,
}


def fetch_alone(settings: Settings, start: TopicPartition, most: int) -> list[Message]:
    """Return the messages that one fetch finds, if any.

    A client that fetches ahead decompresses batches in a thread of its own. If that ends the process, the records
    that are handled meanwhile are not to blame. A closed client does nothing any more.
    """
    smallest = min([(most - 1) * RECORD_BYTES + 1, *(int(settings[each]) for each in _SIZES if each in settings)])
    consumer = Consumer({**settings, **_ONE_FETCH, **dict.fromkeys(_SIZES, smallest)})
    calls = BoundedCalls(consumer.close)
    try:
        consumer.assign([start])
        # Before it answers this call, the client puts a marker of its start into the queue, and would wait a second
        # because of the marker.
        consumer.assignment()
        messages = consumer.consume(most, 0)
        # After a request that names the topic, the client knows the partition's leader at once.
        consumer.list_topics(start.topic, timeout=ANSWER_SECONDS)
        until = time.monotonic() + FETCH_SECONDS
        # A call that waits in the client would take a message before the client has looked at its queue.
        while not messages and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
            messages = consumer.consume(most, 0)
    finally:
        # Until it is closed, the client may still do something.
        calls.within(CLOSE_SECONDS, "the client that had fetched was closed", consumer.close)
    return messages
