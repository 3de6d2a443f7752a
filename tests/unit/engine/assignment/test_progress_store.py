from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.lease import Lease
from kpipe_engine.assignment import progress_store as module
from kpipe_engine.assignment.progress_store import ProgressStore, stored_beside
from kpipe_engine.assignment.range_state import RangeState
from tests.kit.plans import plan_of

RANGE = PartitionRange(3, 10, 20, 10, leader_epoch=7)
PLAN = plan_of(RANGE)
LEASE = Lease(1, 2, 0)


class Groups:
    """The groups of all slots: a worker's own consumer reads one of them, and readers of their own read the others."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, int], str] = {}
        self.closed: list[str] = []

    def held(self, asked: Sequence[TopicPartition]) -> list[TopicPartition]:
        return self.read(PLAN.progress_group(), asked)

    def read(self, group: str, asked: Sequence[TopicPartition]) -> list[TopicPartition]:
        texts = {each.partition: self.texts.get((group, each.partition), "") for each in asked}
        return [TopicPartition(PLAN.topic, partition, 15, text) for partition, text in texts.items()]


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Groups()
    monkeypatch.setattr(module, "group_reader", lambda settings, plan, slot: plan.progress_group(slot))
    monkeypatch.setattr(module, "held_offsets", lambda reader, group, asked, seconds: made.read(group, asked))
    monkeypatch.setattr(module, "let_go", lambda *readers: made.closed.extend(readers))
    return made


def store(groups: Any) -> ProgressStore:
    return ProgressStore(PLAN, LEASE, 0, groups, {})


def handled(offset: int) -> RangeState:
    state = RangeState(RANGE)
    state.claim()
    state.advance(offset)
    state.counts.read = state.counts.written = offset - RANGE.start
    return state


def test_progress_lies_beside_the_handled_offset_and_comes_back_as_it_was(groups: Any) -> None:
    ((entry,), details) = store(groups).entries([handled(15)])
    assert details == []
    assert (entry.topic, entry.partition, entry.offset, entry.leader_epoch) == ("orders", 3, 15, 7)
    found = stored_beside(entry)
    assert found is not None
    assert (found.offset, found.progress.lease, found.progress.counts.read) == (15, LEASE, 5)
    assert found.progress.is_of(PLAN.run_key, PLAN.number)


def test_an_entry_that_is_too_large_becomes_details(groups: Any) -> None:
    state = handled(15)
    state.counts.named = {f"counter {at:03}": at for at in range(300)}
    ((entry,), (details,)) = store(groups).entries([state])
    assert len((entry.metadata or "").encode()) <= PLAN.metadata_bytes
    assert (details.topic, details.partition, details.offset) == ("orders", 3, 15)
    found = stored_beside(entry)
    assert found is not None
    assert found.progress.is_detailed


@pytest.mark.parametrize("metadata", ["", "of another tool", "{}"])
def test_an_offset_without_progress_of_ours_holds_none(metadata: str) -> None:
    assert stored_beside(TopicPartition("orders", 3, 15, metadata)) is None


def test_progress_without_an_offset_does_not_count(groups: Any) -> None:
    ((entry,), _) = store(groups).entries([handled(15)])
    assert stored_beside(TopicPartition("orders", 3, -1001, entry.metadata)) is None


def test_another_slots_group_has_a_reader_that_is_closed_again(groups: Any) -> None:
    groups.texts = {(PLAN.progress_group(slot), 3): f"of slot {slot}" for slot in (0, 1)}
    assert store(groups).held([3], 0)[3].metadata == "of slot 0"
    assert groups.closed == []
    assert store(groups).held([3], 1)[3].metadata == "of slot 1"
    assert groups.closed == [PLAN.progress_group(1)]


def test_a_reader_for_looks_stays_open_until_the_store_closes(groups: Any) -> None:
    opened, asked = store(groups), [TopicPartition(PLAN.topic, 3)]
    groups.texts = {(PLAN.progress_group(slot), 3): f"of slot {slot}" for slot in (0, 1)}
    for slot in (0, 1, 1):
        assert [each.metadata for each in opened.look(asked, slot)] == [f"of slot {slot}"]
    assert groups.closed == []
    assert len(opened._readers) == 1
    opened.close()
    assert groups.closed == [PLAN.progress_group(1)]


def test_progress_of_the_run_is_that_of_any_of_its_attempts(groups: Any) -> None:
    progress = handled(15).to_stored_progress(PLAN, LEASE)
    opened = store(groups)
    assert opened.of_run(progress.to_text(), 3) == progress
    assert opened.of_run(replace(progress, number=progress.number + 1).to_text(), 3) is None
    assert opened.of_run("of another tool", 3) is None


def test_pieces_are_those_beyond_the_first_that_have_progress(groups: Any) -> None:
    progress = handled(15).to_stored_progress(PLAN, LEASE)
    groups.texts = {
        (PLAN.progress_group(0), 3): progress.to_text(),
        (PLAN.progress_group(2), 3): replace(progress, number=5).to_text(),
    }
    assert [each.progress.number for each in store(groups).pieces(3, 3)] == [5]
