from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import Counts
from kpipe_engine.assignment import progress_store as module
from kpipe_engine.assignment.other_workers import OtherWorkers
from kpipe_engine.assignment.progress_store import ProgressStore
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.errors import PartitionHaltedError, PipelineHaltedError
from tests.kit.plans import plan_of

CUT, WHOLE, EMPTY = PartitionRange(0, 0, 90, 0, cuts=(30,)), PartitionRange(1, 0, 20, 0), PartitionRange(2, 5, 5, 5)
JOB = Job(
    KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out")), plan_of(CUT, WHOLE, EMPTY), attempt=4
)


class Groups:
    """The groups of both slots, and how often each was read."""

    def __init__(self) -> None:
        self.texts: dict[tuple[int, int], str] = {}
        self.asked: list[tuple[int, tuple[int, ...]]] = []

    def held(self, asked: Sequence[TopicPartition]) -> list[TopicPartition]:
        return self.read(0, asked)

    def read(self, slot: int, asked: Sequence[TopicPartition]) -> list[TopicPartition]:
        self.asked.append((slot, tuple(each.partition for each in asked)))
        return [
            TopicPartition(each.topic, each.partition, 5, self.texts.get((slot, each.partition), "")) for each in asked
        ]

    def store(self, planned: PartitionRange, counts: Counts, stop: str | None = None, attempt: int = 4) -> None:
        state = RangeState(planned)
        state.claim()
        state.counts = counts
        if stop is not None:
            state.stop(PipelineHaltedError(stop))
        progress = state.to_stored_progress(JOB.plan, Lease(JOB.plan.number, attempt, 0))
        self.texts[planned.slot, planned.partition] = progress.to_text()


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Groups()
    monkeypatch.setattr(module, "group_reader", lambda settings, plan, slot: slot)
    monkeypatch.setattr(module, "held_offsets", lambda reader, group, asked, seconds: made.read(reader, asked))
    return made


@pytest.fixture
def others(groups: Any) -> OtherWorkers:
    """Those beside the worker of the first piece of partition 0."""
    store = ProgressStore(JOB.plan, Lease(JOB.plan.number, 4, 0), 0, groups, {})
    return OtherWorkers(JOB, store, CUT.pieces[:1])


def test_all_pieces_but_the_workers_own_are_looked_at(others: OtherWorkers, groups: Groups) -> None:
    others.look()
    assert sorted(groups.asked) == [(0, (1,)), (1, (0,))]
    assert sorted(others.slots) == [0, 1]


def test_a_look_may_be_at_some_slots_only(others: OtherWorkers, groups: Groups) -> None:
    others.look([1])
    assert groups.asked == [(1, (0,))]


def test_the_last_counts_of_each_piece_add_up(others: OtherWorkers, groups: Groups) -> None:
    assert others.counts == Counts()
    groups.store(WHOLE, Counts(read=5, written=5))
    groups.store(CUT.pieces[1], Counts(read=3, dead_lettered=3))
    others.look()
    others.look()
    assert others.counts == Counts(read=8, written=5, dead_lettered=3)
    groups.store(WHOLE, Counts(read=9, written=9))
    others.look()
    assert others.counts.read == 12


def test_progress_of_another_run_does_not_count(others: OtherWorkers, groups: Groups) -> None:
    state = RangeState(WHOLE)
    state.counts = Counts(read=5, written=5)
    earlier = state.to_stored_progress(replace(JOB.plan, number=0), Lease(0, 1, 0))
    groups.texts = {(0, 1): earlier.to_text(), (1, 0): "of another tool"}
    others.look()
    assert (others.counts, others.stopped) == (Counts(), None)


@pytest.mark.parametrize(("attempt", "stopped"), [(4, (1, "offset 7: broken")), (3, None)])
def test_only_a_stop_of_this_attempt_is_heeded(
    others: OtherWorkers, groups: Groups, attempt: int, stopped: tuple[int, str] | None
) -> None:
    groups.store(WHOLE, Counts(read=5), "offset 7: broken", attempt)
    others.look()
    assert others.stopped == stopped


def test_progress_that_cannot_be_read_stops_the_partition(others: OtherWorkers, groups: Groups) -> None:
    groups.store(WHOLE, Counts(read=5))
    groups.texts[0, 1] = groups.texts[0, 1].replace('"schema_version":1', '"schema_version":99')
    others.look()
    with pytest.raises(PartitionHaltedError, match=r"what the run has counted is not known: partition 1: .*99"):
        _ = others.counts
