"""Plans, runs, checkpoints, elections and people in any order: nothing is passed over, or handled twice unasked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import settings

from airflow_provider_kpipe.contract.plan import Plan
from tests.kit.standing_machine import Partitions
from tests.kit.standing_model import LIVE, Checkpoint, Worker

TestPartitions = Partitions.TestCase
TestPartitions.settings = settings(max_examples=500, stateful_step_count=40, deadline=None)


# Schedules that were found once, and stay.


@pytest.fixture
def state() -> Iterator[Partitions]:
    made = Partitions()
    yield made
    made.no_record_is_handled_more_often_than_somebody_asked()
    made.no_record_below_the_group_was_passed_over()
    made.no_record_below_where_the_next_plan_begins_is_passed_over()


def run_whole(state: Partitions, otherwise: str = "earliest_at_first") -> Plan:
    plan = state.plan(otherwise=otherwise, most=None)
    assert isinstance(plan, Plan)
    state.begin_and_work(plan=plan, chunks=3)
    state.look_and_commit(plan=plan)
    return plan


def next_start(state: Partitions, otherwise: str = "earliest_at_first") -> int:
    plan = state.plan(otherwise=otherwise, most=None)
    assert isinstance(plan, Plan)
    return plan.ranges[0].start


def group_of(state: Partitions) -> int | None:
    held = state.topic.log(0).group(LIVE).committed
    return held.offset if held else None


def test_a_group_that_is_reset_twice_to_one_offset_is_read_again_twice(state: Partitions) -> None:
    run_whole(state)
    for _ in range(2):
        state.reset(0.0)
        assert next_start(state) == 0
        run_whole(state)
    assert (state.topic.log(0).handled[0], group_of(state)) == (3, 8)


def test_a_reset_to_one_offset_is_seen_again_once_a_checkpoint_has_left_the_group_there(state: Partitions) -> None:
    state.append(8)
    state.reset(0.0)
    plan = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(plan, Plan)
    state.begin(plan=plan)
    state.look_and_commit(plan=plan)
    assert group_of(state) == 0
    state.begin_and_work(plan=plan, chunks=1)
    state.reset(0.0)
    assert next_start(state) == 0


def test_a_published_window_does_not_hide_that_the_log_was_cut_below_it(state: Partitions) -> None:
    run_whole(state)
    state.elect(where=0.5, more=4)
    assert not isinstance(state.plan_a_window(first=8 / 12, length=4, publish=True), Plan)


def test_a_window_that_was_published_is_not_published_again_once_the_group_is_deleted(state: Partitions) -> None:
    window = state.plan_a_window(first=0.0, length=3, publish=True)
    assert isinstance(window, Plan)
    state.begin_and_work(plan=window, chunks=1)
    state.look_and_commit(plan=window)
    assert group_of(state) == 3
    state.delete_the_group(0.0)
    state.look_and_commit(plan=window)
    assert group_of(state) is None


def test_a_group_that_is_deleted_twice_starts_over_twice(state: Partitions) -> None:
    run_whole(state)
    state.delete_the_group(0.0)
    run_whole(state, "latest")
    state.delete_the_group(0.0)
    assert next_start(state, "earliest") == 0


def test_a_cleared_run_whose_progress_is_forgotten_is_done_and_takes_nothing_back(state: Partitions) -> None:
    older = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(older, Plan)
    state.begin_and_work(plan=older, chunks=3)
    state.append(1)
    newer = run_whole(state)
    state.forget_progress(0.0)
    state.begin_and_work(plan=older, chunks=3)
    state.begin_and_work(plan=newer, chunks=3)
    assert max(state.topic.log(0).handled.values()) == 1


def test_three_plans_before_the_first_checkpoint(state: Partitions) -> None:
    plans = [state.plan(otherwise="earliest_at_first", most=most) for most in (4, 4, None)]
    for plan in plans:
        assert isinstance(plan, Plan)
        state.begin_and_work(plan=plan, chunks=3)
        state.look_and_commit(plan=plan)
    assert (group_of(state), next_start(state), max(state.topic.log(0).handled.values())) == (8, 8, 1)


def test_records_of_a_new_partition_are_read_after_its_first_plan(state: Partitions) -> None:
    state.recreate_the_topic(0.0)
    run_whole(state, "latest")
    assert group_of(state) == 8
    state.append(3)
    assert next_start(state, "latest") == 8


def test_a_slow_checkpoint_is_fenced_by_a_newer_one(state: Partitions) -> None:
    older = state.plan(otherwise="earliest_at_first", most=4)
    assert isinstance(older, Plan)
    state.begin_and_work(plan=older, chunks=3)
    slow = state.look(plan=older)
    assert isinstance(slow, Checkpoint)
    run_whole(state)
    state.commit(seen=slow)
    assert group_of(state) == 8


def test_progress_of_a_topic_that_is_gone_counts_no_more(state: Partitions) -> None:
    plan = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(plan, Plan)
    state.begin_and_work(plan=plan, chunks=3)
    state.recreate_the_topic(1.0)
    assert next_start(state) == 0
    run_whole(state)
    assert state.topic.log(0).handled[0] == 1


def test_a_window_that_does_not_reach_back_to_a_group_that_was_reset_is_not_published(state: Partitions) -> None:
    first = state.plan(otherwise="earliest_at_first", most=4)
    assert isinstance(first, Plan)
    state.begin_and_work(plan=first, chunks=3)
    state.look_and_commit(plan=first)
    window = state.plan_a_window(first=0.5, length=4, publish=True)
    assert isinstance(window, Plan)
    state.begin_and_work(plan=window, chunks=3)
    state.reset(0.0)
    state.look_and_commit(plan=window)
    assert group_of(state) == 0


def test_a_run_from_before_a_reset_that_stores_after_it_tears_no_two_runs_apart(state: Partitions) -> None:
    before = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(before, Plan)
    state.reset(0.0)
    first = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(first, Plan)
    state.begin_and_work(plan=before, chunks=3)
    second = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(second, Plan)
    for plan in (first, second):
        state.begin_and_work(plan=plan, chunks=3)
    assert max(state.topic.log(0).handled.values()) == 2


def test_a_cleared_run_from_before_a_reset_does_nothing_once_a_newer_one_has_gone_on(state: Partitions) -> None:
    before = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(before, Plan)
    state.begin_and_work(plan=before, chunks=1)
    state.reset(0.0)
    run_whole(state)
    state.forget_progress(0.0)
    state.begin_and_work(plan=before, chunks=3)
    assert max(state.topic.log(0).handled.values()) == 2


def test_nor_where_somebody_has_reset_the_group_again_since(state: Partitions) -> None:
    before = run_whole(state)
    state.reset(0.0)
    run_whole(state)
    state.forget_progress(0.0)
    state.reset(1.0)
    state.begin_and_work(plan=before, chunks=3)
    assert max(state.topic.log(0).handled.values()) == 2


def test_a_cleared_run_is_done_also_where_its_progress_is_forgotten_and_the_group_was_reset(state: Partitions) -> None:
    done = run_whole(state)
    state.forget_progress(0.0)
    state.reset(1.0)
    state.begin_and_work(plan=done, chunks=3)
    assert max(state.topic.log(0).handled.values()) == 1


def test_a_plan_goes_on_behind_an_election_that_has_lost_nothing(state: Partitions) -> None:
    run_whole(state)
    state.elect(where=1.0, more=3)
    assert next_start(state) == 8
    run_whole(state)
    assert (group_of(state), max(state.topic.log(0).handled.values())) == (11, 1)


def test_a_log_that_was_cut_and_has_grown_past_the_group_stops_until_somebody_resets_it(state: Partitions) -> None:
    run_whole(state)
    state.elect(where=0.5, more=2)
    assert not isinstance(state.plan(otherwise="earliest", most=None), Plan)
    state.reset(0.4)
    run_whole(state)
    assert (group_of(state), state.topic.log(0).unread) == (10, set())


def test_a_log_that_was_cut_below_where_pieces_have_come_to_stops_before_any_checkpoint(state: Partitions) -> None:
    plan = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(plan, Plan)
    state.begin_and_work(plan=plan, chunks=1)
    log = state.topic.log(0)
    stored = log.group(LIVE).stored
    assert stored is not None
    log.group(LIVE).stored = replace(stored, pieces=((4, 8),))
    log.unread.clear()
    assert next_start(state) == 8
    state.elect(where=0.75, more=2)
    assert not isinstance(state.plan(otherwise="earliest_at_first", most=None), Plan)


def test_a_run_from_before_the_topic_grew_is_fenced_by_a_newer_one(state: Partitions) -> None:
    older = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(older, Plan)
    worker = state.begin(plan=older)
    assert isinstance(worker, Worker)
    state.work(worker=worker, most=4)
    state.grow()
    state.append(3, which=1)
    newer = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(newer, Plan)
    assert [(each.start, each.end) for each in newer.ranges] == [(4, 8), (0, 3)]
    for which in (0, 1):
        state.begin_and_work(plan=newer, chunks=3, which=which)
    state.work(worker=worker, most=4)
    state.look_and_commit(plan=older)
    state.look_and_commit(plan=newer)
    assert [max(log.handled.values()) for log in state.topic.logs] == [1, 1]
    assert [log.unread for log in state.topic.logs] == [set(), set()]


def test_records_of_an_added_partition_are_read_after_its_first_plan(state: Partitions) -> None:
    run_whole(state, "latest")
    state.grow()
    run_whole(state, "latest")
    state.append(3, which=1)
    plan = state.plan(otherwise="latest", most=None)
    assert isinstance(plan, Plan)
    assert [(each.start, each.end) for each in plan.ranges] == [(8, 8), (0, 3)]


def test_a_gate_takes_an_offset_of_a_topic_that_is_gone_for_none(state: Partitions) -> None:
    run_whole(state)
    state.recreate_the_topic(0.5)
    plan = state.plan(otherwise="earliest", most=None)
    assert isinstance(plan, Plan)
    state.look_through_the_gate(plan=plan)
    state.begin_and_work(plan=plan, chunks=1)
    state.look_and_commit(plan=plan)
    assert group_of(state) == 4


def test_no_window_is_published_behind_an_offset_of_a_topic_that_is_gone(state: Partitions) -> None:
    run_whole(state)
    state.recreate_the_topic(0.5)
    assert group_of(state) == 8
    assert not isinstance(state.plan_a_window(first=0.5, length=4, publish=True), Plan)


def test_nor_does_a_gate_take_the_end_of_an_earlier_run_of_the_same_key_for_this_ones(state: Partitions) -> None:
    for _ in range(2):
        window = state.plan_a_window(first=0.0, length=4, publish=False, is_again=True)
        assert isinstance(window, Plan)
        state.look_through_the_gate(plan=window)
        state.begin_and_work(plan=window, chunks=1)
        state.look_and_commit(plan=window)
    assert state.topic.log(0).handled[0] == 2
