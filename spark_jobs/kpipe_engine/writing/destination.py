"""Destination of outputs: records become messages, which go to the producer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from confluent_kafka import KafkaException

from airflow_provider_kpipe.contract.dead_letters.header_names import check_header_name
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination
from airflow_provider_kpipe.record import Header, Record, SourceMessage
from kpipe_engine.errors import UnwritableRecordError, stop_if_unwritable
from kpipe_engine.writing.header_rules import choose_header_rules
from kpipe_engine.writing.output_rows import Row
from kpipe_engine.writing.producer_session import NOW, PARTITIONER_CHOOSES, ProducerSession

_name_of = itemgetter(0)


class Destination:
    """Writer to the output topic."""

    def __init__(self, declared: KafkaDestination, session: ProducerSession) -> None:
        self._topic = declared.topic
        self._keep_partition = declared.keep_partition
        self._keep_timestamp = declared.keep_timestamp
        self._rules = choose_header_rules(declared)
        self._session = session

    def copy_while_taken(self, messages: Sequence[SourceMessage]) -> int:
        """Copy records byte for byte as long as the producer takes them, and return how many it took.

        A plain copy spends its time in this loop, so the loop ignores everything unusual: the caller gives the record
        that was not taken to `copy`.
        """
        produce, topic = self._session.produce_fast, self._topic
        keep_partition, keep_timestamp, rules = self._keep_partition, self._keep_timestamp, self._rules
        taken = 0
        try:
            for message in messages:
                # Arguments by position: names would cost a dictionary for each record. The two None are callbacks.
                produce(
                    topic,
                    message.value(),
                    message.key(),
                    message.partition() if keep_partition else PARTITIONER_CHOOSES,
                    None,
                    None,
                    message.timestamp()[1] if keep_timestamp else NOW,
                    rules.apply(message.headers(), message) if rules else message.headers(),
                )
                taken += 1
        except (BufferError, KafkaException, TypeError, ValueError, OverflowError):
            pass
        return taken

    def copy(self, message: SourceMessage) -> None:
        """Copy one record that may have to wait for room, or may not fit at all."""
        self._produce(
            message,
            self._topic,
            message.value(),
            message.key(),
            message.partition() if self._keep_partition else PARTITIONER_CHOOSES,
            message.timestamp()[1] if self._keep_timestamp else NOW,
            self._headers(message.headers(), message),
        )

    def write_while_taken(self, rows: Iterable[Row]) -> int:
        """Write rows that batch segments returned as long as the producer takes them, and return how many it took.

        As in `copy_while_taken`, the caller gives the row that was not taken to `write`, which finds out the reason.
        """
        produce, own_topic = self._session.produce_fast, self._topic
        keep_partition, keep_timestamp, rules = self._keep_partition, self._keep_timestamp, self._rules
        taken = 0
        try:
            for message, key, value, own, timestamp, topic, partition in rows:
                if partition is None:
                    partition = message.partition() if keep_partition else PARTITIONER_CHOOSES
                headers = message.headers()
                if own is not None and own != headers:
                    headers = own
                    check_names(headers)
                if rules:
                    headers = rules.apply(headers, message)
                timestamp = timestamp if keep_timestamp else NOW
                produce(topic or own_topic, value, key, partition, None, None, timestamp, headers)
                taken += 1
        except (BufferError, KafkaException, UnwritableRecordError, TypeError, ValueError, OverflowError, LookupError):
            pass
        return taken

    def write(self, record: Record, message: SourceMessage) -> None:
        """Write a record that segments returned; they may have chosen its topic and partition."""
        partition = record.partition
        if partition is None:
            partition = message.partition() if self._keep_partition else PARTITIONER_CHOOSES
        topic = record.topic or self._topic
        # Not the headers of `message`: a segment may have held the record back, and returned it with a later message.
        headers, own = record.message.headers(), record.own_headers
        if own is not None and own != headers:
            headers = own
            check_names(headers)
        if self._rules:
            headers = self._headers(headers, message)
        timestamp = record.timestamp if self._keep_timestamp else NOW
        produce = self._session.produce_fast
        try:
            # As in `copy_while_taken`: names and a callback would double the cost of this.
            produce(topic, record.value, record.key, partition, None, None, timestamp, headers)
            return
        except (BufferError, KafkaException, TypeError, ValueError, OverflowError):
            pass
        self._produce(message, topic, record.value, record.key, partition, timestamp, headers)

    def _produce(self, message: SourceMessage, topic: str, *rest: Any) -> None:
        try:
            self._session.produce(message.offset(), "destination", topic, *rest)
        except UnwritableRecordError as error:
            if isinstance(error.__cause__, KafkaException):
                stop_if_unwritable(topic, self._topic, error.__cause__.args[0], message.offset())
            raise

    def _headers(self, headers: list[Header] | None, message: SourceMessage) -> list[Header] | None:
        if self._rules is None:
            return headers
        try:
            return self._rules.apply(headers, message)
        except (TypeError, LookupError) as error:
            raise UnwritableRecordError from error


def check_names(headers: Any) -> None:
    """Raise UnwritableRecordError for names that no header can have.

    The client's library ends the whole process over some of them, and writes other names for the rest. A name that was
    read is sound.
    """
    try:
        for name in headers if isinstance(headers, dict) else map(_name_of, headers):
            if type(name) is not str or not name.isascii() or "\0" in name:
                check_header_name(name)
    except (TypeError, ValueError, LookupError) as error:
        raise UnwritableRecordError from error
