from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from kpipe_engine.assignment.progress_store import Entries
from kpipe_engine.errors import ChunkFailedError
from kpipe_engine.writing.chunk_writer import AtLeastOnceWriter
from tests.kit.plans import plan_of

RANGE = PartitionRange(3, 10, 20, None)
ENTRIES = Entries([TopicPartition("orders", 3, 15), TopicPartition("orders", 4, 25)], [])


class Kafka:
    """Consumer, claims, details and session in one: keeps what is committed."""

    def __init__(self) -> None:
        self.is_acknowledged = False
        self.held: list[TopicPartition] = []
        """What is stored, of what is acknowledged."""
        self.goes_down_after = 2
        """So many commits."""
        self.refused: dict[int, KafkaError] = {}
        self.taken_over: list[int] = []

    def lost(self, partitions: list[int]) -> list[int]:
        return [each for each in partitions if each in self.taken_over]

    def wait(self) -> None:
        self.is_acknowledged = True

    def commit(self, *given: Any, **named: Any) -> list[Any]:
        # Those of the details are committed by another's method of that name.
        if not self.goes_down_after:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        self.goes_down_after -= 1
        self.held += given[0] if self.is_acknowledged else []
        return [Stored(each.partition, each.offset, self.refused.get(each.partition)) for each in ENTRIES.progress]


class Stored:
    """What a broker answers about one partition of a commit."""

    def __init__(self, partition: int, offset: int, error: KafkaError | None) -> None:
        self.partition, self.offset, self.error = partition, offset, error


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()


def opened(kafka: Any) -> AtLeastOnceWriter:
    pipeline = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"), delivery="at_least_once")
    return AtLeastOnceWriter(Job(pipeline, plan_of(RANGE)), 0, kafka, kafka, kafka, kafka)


def test_at_least_once_stores_what_is_acknowledged(kafka: Kafka) -> None:
    opened(kafka).store(ENTRIES)
    assert kafka.held == ENTRIES.progress


def test_details_are_there_before_the_progress_that_says_so(kafka: Kafka) -> None:
    details = [TopicPartition("orders", 3, 15, "details")]
    entries = ENTRIES._replace(details=details)
    kafka.goes_down_after = 1
    with pytest.raises(KafkaException):
        opened(kafka).store(entries)
    assert kafka.held == details
    kafka.goes_down_after = 2
    opened(kafka).store(entries)
    assert kafka.held == [*details, *details, *ENTRIES.progress]


def test_one_partition_that_is_not_stored_makes_nothing_of_the_chunk(kafka: Kafka) -> None:
    kafka.refused[4] = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    with pytest.raises(ChunkFailedError, match="offset 25 of partition 4 could not be stored"):
        opened(kafka).store(ENTRIES)


def test_a_partition_that_was_taken_over_stores_nothing(kafka: Kafka) -> None:
    kafka.taken_over = [4]
    with pytest.raises(ChunkFailedError, match="partition 4 was taken over"):
        opened(kafka).store(ENTRIES)
    assert (kafka.is_acknowledged, kafka.held) == (True, [])


def test_a_chunk_without_news_stores_nothing(kafka: Kafka) -> None:
    opened(kafka).store(Entries([], []))
    assert (kafka.is_acknowledged, kafka.held) == (True, [])
