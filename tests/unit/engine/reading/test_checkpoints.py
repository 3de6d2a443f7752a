from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from airflow_provider_kpipe.contract.kafka_names import published_group_of
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.checkpoint import CommitMark
from kpipe_engine.reading import checkpoints as module
from kpipe_engine.reading.checkpoints import Checkpoints
from tests.kit.plans import plan_of

ORIGIN = Origin(3)
PLAN = plan_of(*(PartitionRange(each, 10, 90, 10, origin=ORIGIN) for each in range(2)))
NOTHING = -1001


class Groups:
    """What the group and its last checkpoints hold, by group and partition."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, int], tuple[int, str]] = {}
        self.read: list[str] = []
        self.closed: list[str] = []

    def commit(self, group: str, partition: int, offset: int, origin: Origin = ORIGIN) -> None:
        mark = CommitMark("dag/before/plan", 0, PLAN.topic_id, origin, PLAN.owner)
        self.held[group, partition] = (offset, mark.to_text())

    def held_offsets(self, reader: str, group: str, asked: Sequence[Any], seconds: float) -> list[TopicPartition]:
        assert reader == group
        self.read.append(group)
        return [
            TopicPartition(each.topic, each.partition, *self.held.get((group, each.partition), (NOTHING, "")))
            for each in asked
        ]


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Groups:
    made = Groups()

    def reader_of(settings: Any, group: str) -> str:
        assert settings["isolation.level"] == "read_uncommitted"
        return group

    monkeypatch.setattr(module, "reader_of", reader_of)
    monkeypatch.setattr(module, "held_offsets", made.held_offsets)
    monkeypatch.setattr(module, "let_go", made.closed.append)
    return made


def reached(*partitions: int) -> dict[int, int | None]:
    found = Checkpoints({"isolation.level": "read_committed"}, PLAN, partitions)
    positions = {each: found.reached(each) for each in partitions}
    return {each: None if held is None else held.offset for each, held in positions.items()}


def test_a_checkpoint_moves_a_partition_beyond_the_start_of_the_plan(groups: Groups) -> None:
    groups.commit("orders", 0, 40)
    assert reached(0, 1) == {0: 40, 1: None}


def test_a_commit_counts_even_if_the_group_was_moved_since(groups: Groups) -> None:
    groups.held["orders", 0] = (5, "")
    groups.commit(published_group_of("orders"), 0, 50)
    assert reached(0) == {0: 50}


@pytest.mark.parametrize(("offset", "origin"), [(10, ORIGIN), (40, Origin(2))], ids=["at the start", "of before"])
def test_other_commits_move_nothing(groups: Groups, offset: int, origin: Origin) -> None:
    groups.commit("orders", 0, offset, origin)
    assert reached(0) == {0: None}


def test_the_groups_are_read_once_at_the_first_question(groups: Groups) -> None:
    checkpoints = Checkpoints({}, PLAN, [0, 1])
    assert groups.read == []
    for partition in (0, 1, 0):
        checkpoints.reached(partition)
    assert groups.read == groups.closed == ["orders", published_group_of("orders")]
