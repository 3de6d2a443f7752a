"""Source topics and their records, and a check of the output of a contestant."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as Received
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.sandbox import create_topics
from bench.work import SAMPLE_EVERY, BenchError, Job, Message, Records

READ_RECORDS = 10_000
STALL_SECONDS = 30.0
ANSWER_SECONDS = 30.0


class WrongOutputError(BenchError):
    """Output of other records than expected: the contestant's time means nothing."""


def seed(bootstrap_servers: str, records: Records) -> None:
    """Create the topic and fill it."""
    create_topics(bootstrap_servers, records.topic, partitions=records.partitions, timeout=120.0)
    send(bootstrap_servers, records, range(records.count))


def send(bootstrap_servers: str, records: Records, record_ids: Sequence[int]) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "delivery.report.only.error": True,
            "on_delivery": _refuse_to_lose,
        }
    )
    for record_id in record_ids:
        message, partition = records.message(record_id), records.partition_of(record_id)
        while True:
            try:
                producer.produce(records.topic, message.value, message.key, partition, headers=message.headers)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


@contextmanager
def written_topics(job: Job) -> Iterator[None]:
    """Create the written topics for the block; delete their data soon after, so that a long bench fits on the disk."""
    config = {"file.delete.delay.ms": "1000"}
    create_topics(
        job.bootstrap_servers,
        *job.written_topics,
        partitions=job.work.records.partitions,
        config=config,
        timeout=120.0,
    )
    try:
        yield
    finally:
        delete_topics(job.bootstrap_servers, job.written_topics)


def delete_topics(bootstrap_servers: str, names: Sequence[str]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for deleted in admin.delete_topics(list(names), operation_timeout=60.0, request_timeout=90.0).values():
        deleted.result()


def check_output(job: Job, *, unique: bool, headers: bool = True) -> None:
    """Raise unless readers of committed records find every record in its topic; compare a sample byte for byte.

    `unique`: the contestant promises each record once. `headers`: it can keep them, so compare them too.
    """
    work, records = job.work, job.work.records
    _check_topic(job, job.output, work.wanted(), work.expected, unique=unique, headers=headers)
    if records.poison_percent:
        # The headers of a dead letter describe its fault.
        poison = bytes(map(records.is_poison, range(records.count)))
        _check_topic(job, job.dead_letters, poison, records.message, unique=unique, headers=False)


def count_records(job: Job) -> int:
    """Count the records in the output topic by its offsets; exact only if written without transactions."""
    with closing(Consumer({"bootstrap.servers": job.bootstrap_servers, "group.id": "bench-check"})) as consumer:
        ends = [
            consumer.get_watermark_offsets(TopicPartition(job.output, number), timeout=ANSWER_SECONDS)[1]
            for number in range(job.work.records.partitions)
        ]
    return sum(ends)


def _check_topic(
    job: Job,
    topic: str,
    wanted: bytes,
    expected: Callable[[int], Message],
    *,
    unique: bool,
    headers: bool,
) -> None:
    count = job.work.records.count
    seen, read = bytearray(count), 0
    for messages in _read_committed(job, topic):
        read += len(messages)
        for message in messages:
            record_id = int(message.key() or -1)
            if not 0 <= record_id < count:
                raise WrongOutputError(f"{topic}: the key {message.key()!r} was never in the source")
            seen[record_id] = 1
            if record_id % SAMPLE_EVERY == 0:
                _check_contents(topic, message, expected(record_id), headers)
    twice = read - sum(seen)
    missing = strange = 0
    if seen != wanted:
        missing = sum(want and not have for want, have in zip(wanted, seen, strict=True))
        strange = sum(have and not want for want, have in zip(wanted, seen, strict=True))
    if missing or strange or (twice and unique):
        raise WrongOutputError(
            f"{topic}: {read} records instead of {sum(wanted)}; {missing} are missing, {strange} do not belong there, "
            f"{twice} came more than once"
        )


def _check_contents(topic: str, message: Received, expected: Message, headers: bool) -> None:
    found, wanted = (message.value(), message.headers()), (expected.value, expected.headers)
    if found[0] != wanted[0] or (headers and found[1] != wanted[1]):
        raise WrongOutputError(
            f"{topic}: record {expected.key!r} arrived as {found[0]!r} with headers {found[1]!r}, "
            f"and should be {wanted[0]!r} with {wanted[1]!r}"
        )


def _read_committed(job: Job, topic: str) -> Iterator[Sequence[Received]]:
    partitions = [TopicPartition(topic, number, 0) for number in range(job.work.records.partitions)]
    settings = {
        "bootstrap.servers": job.bootstrap_servers,
        "group.id": "bench-check",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 50,
        "fetch.queue.backoff.ms": 5,
    }
    with closing(Consumer(settings)) as consumer:
        consumer.assign(partitions)
        ended: set[int | None] = set()
        heard_at = time.monotonic()
        while len(ended) < len(partitions):
            batch = consumer.consume(READ_RECORDS, 0.2)
            if batch:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > STALL_SECONDS:
                raise BenchError(f"{topic} cannot be read to its end")
            messages = []
            for message in batch:
                error = message.error()
                if error is None:
                    messages.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise KafkaException(error)
            yield messages


def _refuse_to_lose(error: KafkaError | None, _message: object) -> None:
    if error is not None:
        raise BenchError(f"the source topic could not be seeded: {error}")
