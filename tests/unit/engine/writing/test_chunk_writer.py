from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from plans import plan_of

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery, KafkaDestination, KafkaPipeline, KafkaSource
from kpipe_engine.assignment.claiming import Positions
from kpipe_engine.errors import ChunkFailedError
from kpipe_engine.wiring import choose_delivery
from kpipe_engine.writing import chunk_writer as module

RANGE = PartitionRange(3, 10, 20, None)
POSITIONS = Positions([TopicPartition("orders", 3, 15), TopicPartition("orders", 4, 25)], [])


class Kafka:
    """Source, ownership, details, admission, acknowledgements and the store in one: keeps what is committed."""

    def __init__(self) -> None:
        self.is_acknowledged = False
        self.held: list[TopicPartition] = []
        """What is stored, of what is acknowledged."""
        self.goes_down_after = 2
        """So many commits."""
        self.refused: dict[int, KafkaError] = {}
        self.taken_over: list[int] = []

    @property
    def consumer(self) -> Kafka:
        return self

    def consumer_group_metadata(self) -> str:
        return "group"

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
        return [Stored(each.partition, each.offset, self.refused.get(each.partition)) for each in POSITIONS.progress]


class Stored:
    """What a broker answers about one partition of a commit."""

    def __init__(self, partition: int, offset: int, error: KafkaError | None) -> None:
        self.partition, self.offset, self.error = partition, offset, error


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    made = Kafka()
    monkeypatch.setattr(module, "ProducerSession", lambda *given: made)
    return made


def opened(kafka: Any, delivery: Delivery) -> Any:
    pipeline = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"), delivery=delivery)
    return choose_delivery({}, Job(pipeline, plan_of(RANGE)), RANGE, kafka, kafka, kafka, kafka)


def test_at_least_once_stores_what_is_acknowledged(kafka: Kafka) -> None:
    opened(kafka, "at_least_once").store(POSITIONS)
    assert kafka.held == POSITIONS.progress


def test_details_are_there_before_the_progress_that_says_so(kafka: Kafka) -> None:
    details = [TopicPartition("orders", 3, 15, "details")]
    positions = POSITIONS._replace(details=details)
    kafka.goes_down_after = 1
    with pytest.raises(KafkaException):
        opened(kafka, "at_least_once").store(positions)
    assert kafka.held == details
    kafka.goes_down_after = 2
    opened(kafka, "at_least_once").store(positions)
    assert kafka.held == [*details, *details, *POSITIONS.progress]


def test_one_partition_that_is_not_stored_makes_nothing_of_the_chunk(kafka: Kafka) -> None:
    kafka.refused[4] = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    with pytest.raises(ChunkFailedError, match="offset 25 of partition 4 could not be stored"):
        opened(kafka, "at_least_once").store(POSITIONS)


def test_what_was_taken_over_is_not_stored(kafka: Kafka) -> None:
    kafka.taken_over = [4]
    with pytest.raises(ChunkFailedError, match="partition 4 was taken over"):
        opened(kafka, "at_least_once").store(POSITIONS)
    assert (kafka.is_acknowledged, kafka.held) == (True, [])


def test_a_chunk_without_news_stores_nothing(kafka: Kafka) -> None:
    opened(kafka, "at_least_once").store(Positions([], []))
    assert (kafka.is_acknowledged, kafka.held) == (True, [])
