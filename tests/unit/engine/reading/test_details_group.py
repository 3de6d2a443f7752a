from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from kpipe_engine.errors import ChunkFailedError
from kpipe_engine.reading import details_group as module
from kpipe_engine.reading.details_group import DetailsGroup
from tests.kit.plans import plan_of

POSITIONS = [TopicPartition("orders", 3, 15, "of 3"), TopicPartition("orders", 4, 25, "of 4")]


class Group:
    """Keeps what is committed to it, but for the partitions that it refuses."""

    def __init__(self) -> None:
        self.refused: set[int] = set()
        self.held: dict[int, str | None] = {}
        self.is_closed = False

    def commit(self, offsets: Sequence[TopicPartition], asynchronous: bool) -> list[Any]:
        assert not asynchronous
        self.held.update({each.partition: each.metadata for each in offsets if each.partition not in self.refused})
        error = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
        return [
            SimpleNamespace(partition=each.partition, error=error if each.partition in self.refused else None)
            for each in offsets
        ]

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    made = Group()

    def reader_of(settings: Any, name: str) -> Group:
        assert name == "orders.kpipe.details"
        return made

    monkeypatch.setattr(module, "reader_of", reader_of)
    return made


def commit() -> None:
    DetailsGroup({}, plan_of(PartitionRange(3, 10, 20, None)), 0).commit(POSITIONS, 10)


def test_details_are_stored_beside_each_partition(group: Group) -> None:
    commit()
    assert (group.held, group.is_closed) == ({3: "of 3", 4: "of 4"}, True)


def test_one_partition_whose_details_are_not_stored_makes_nothing_of_the_chunk(group: Group) -> None:
    group.refused = {4}
    with pytest.raises(ChunkFailedError, match=r"^partition 4 could not be stored: .*COORDINATOR_LOAD_IN_PROGRESS"):
        commit()
    assert group.is_closed
