"""Counter in Kafka: its numbers order plans and attempts, which clocks cannot."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from airflow_provider_kpipe.contract.connecting import connecting
from airflow_provider_kpipe.contract.kafka_names import sequence_group_of, sequence_id_of
from airflow_provider_kpipe.exceptions import KafkaUnavailableError, KpipeError
from airflow_provider_kpipe.kafka.bounds import let_go
from airflow_provider_kpipe.kafka.broker_errors import needing, passes, remedy
from airflow_provider_kpipe.kafka.cluster import ANSWER_SECONDS
from airflow_provider_kpipe.kafka.held_offsets import held_offsets
from airflow_provider_kpipe.transactions.offset_transaction import OffsetTransaction

log = logging.getLogger(__name__)

DRAW_TRIES = 5
# Two clients that draw at the same time abort each other's transaction: the later one goes first.
AGAIN_SECONDS = 0.2


def draw_number(settings: Mapping[str, str], group: str, topic: str, above: int = 0) -> int:
    """Draw a unique number, higher than all that were drawn before it and than `above`.

    The counter is an offset of a group of its own. The transaction that moves it fences any other client that draws at
    the same time: two clients never read the same number and count on from it. A cluster that does not answer is asked
    only as long as for any other question.
    """
    until = time.monotonic() + ANSWER_SECONDS
    for attempt in range(1, DRAW_TRIES + 1):
        try:
            return _draw(settings, group, topic, above)
        except KafkaException as failure:
            error = failure.args[0]
            is_last = attempt == DRAW_TRIES or time.monotonic() >= until
            if is_last or not (error.fatal() or error.txn_requires_abort() or passes(error)):
                kind = KafkaUnavailableError if passes(error) else KpipeError
                raise kind(f"no number can be drawn for group {group!r} ({error.str()}): {remedy(error)}") from failure
            log.info("a number could not be drawn for group %r (%s): trying again", group, error.str())
            time.sleep(AGAIN_SECONDS * attempt)
    raise AssertionError("the last try returns or raises")


def _draw(settings: Mapping[str, str], group: str, topic: str, above: int) -> int:
    counter = sequence_group_of(group)
    consumer = Consumer({**connecting({"log_level": 3, **settings}), "group.id": counter, "enable.auto.commit": False})
    try:
        with OffsetTransaction(settings, sequence_id_of(group), topic) as transaction:
            # Read inside the block: an earlier client has either committed by now, or is fenced.
            with needing(group=counter, topic=topic):
                (held,) = held_offsets(consumer, [TopicPartition(topic, 0)], ANSWER_SECONDS)
            number = max(held.offset, above, 0) + 1
            transaction.send(counter, [TopicPartition(topic, 0, number)])
            transaction.commit()
            return number
    finally:
        let_go(consumer)
