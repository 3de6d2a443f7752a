"""Which tasks work on which partitions."""

from __future__ import annotations

import heapq
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.scaling import PartitionScaling
from airflow_provider_kpipe.contract.plan import Plan
from kpipe_engine.supervision.task_layout import MOST_AT_ONCE_IN_A_TASK, Task, TaskLayout, assign_tasks, share_evenly
from tests.kit.plans import plan_of

LENGTHS = st.lists(st.integers(1, 10**7), min_size=1, max_size=60)


def plan(*lengths: int, of: int | None = None) -> Plan:
    ranges = [PartitionRange(partition, 0, length, None) for partition, length in enumerate(lengths)]
    return plan_of(*ranges, topic_partitions=of or len(lengths))


def partitions(layout: TaskLayout) -> list[list[int]]:
    return [[each.partition for block in task.blocks for each in block] for task in layout.tasks]


def test_each_partition_has_a_task_the_longest_first() -> None:
    layout = assign_tasks(plan(5, 70, 0, 30), PartitionScaling(), cores=2)
    assert partitions(layout) == [[1], [3], [0]]
    assert layout.at_once is None


@pytest.mark.parametrize(("most", "at_once"), [(1, 1), (2, 2), (3, None), (9, None)])
def test_a_limit_is_kept_by_running_so_many_tasks_at_once(most: int, at_once: int | None) -> None:
    layout = assign_tasks(plan(5, 70, 30), PartitionScaling(max_concurrent_partitions=most), cores=2)
    assert (len(layout.tasks), layout.at_once) == (3, at_once)


def test_partitions_of_a_topic_with_many_share_a_writer_and_a_task() -> None:
    layout = assign_tasks(plan(*[100] * 1_000), PartitionScaling(), cores=2)
    assert len(layout.tasks) == 64
    assert {len(task.blocks) for task in layout.tasks} == {1}
    assert sorted(chain.from_iterable(partitions(layout))) == list(range(1_000))


@given(lengths=LENGTHS, cores=st.integers(1, 16), most=st.none() | st.integers(1, 100))
def test_interleaved_partitions_never_exceed_the_limit(lengths: list[int], cores: int, most: int | None) -> None:
    scaling = PartitionScaling("parallelize_across_partitions", max_concurrent_partitions=most)
    made = plan(*lengths)
    layout = assign_tasks(made, scaling, cores)
    assert len(layout.tasks) <= cores
    assert layout.at_once is None
    assert sorted(chain.from_iterable(partitions(layout))) == sorted(each.partition for each in made.pending)
    at_work = sum(task.at_once for task in layout.tasks)
    assert at_work <= (most or len(lengths))
    if len(lengths) <= MOST_AT_ONCE_IN_A_TASK:
        assert at_work == min(most or len(lengths), len(lengths))
    for task in layout.tasks:
        assert 1 <= task.at_once <= min(len(task.blocks), MOST_AT_ONCE_IN_A_TASK)


@settings(max_examples=300, deadline=None)
@given(lengths=LENGTHS, cores=st.integers(1, 8), most=st.integers(1, 40))
def test_interleaved_partitions_take_little_more_than_the_best_possible(
    lengths: list[int], cores: int, most: int
) -> None:
    scaling = PartitionScaling("parallelize_across_partitions", max_concurrent_partitions=most)
    layout = assign_tasks(plan(*lengths), scaling, cores)
    places = sum(task.at_once for task in layout.tasks)
    assert max(map(makespan, layout.tasks)) <= best_possible(lengths, places) * 1.3


@pytest.mark.parametrize(
    ("lengths", "most", "longest"), [([6, 6, 6, *[1] * 6], 3, 8), ([6, 1, 1, 6, 1, 6, 6, 6, 1, 2], 6, 6)]
)
def test_places_go_to_where_the_work_is(lengths: list[int], most: int, longest: int) -> None:
    scaling = PartitionScaling("parallelize_across_partitions", max_concurrent_partitions=most)
    assert max(map(makespan, assign_tasks(plan(*lengths), scaling, cores=2).tasks)) == longest


def makespan(task: Task) -> int:
    """How long a task takes whose threads take the next block when they are done with one."""
    free = [0] * task.at_once
    for block in task.blocks:
        heapq.heapreplace(free, free[0] + sum(map(len, block)))
    return max(free)


@settings(max_examples=300, deadline=None)
@given(lengths=LENGTHS, count=st.integers(1, 10))
def test_shares_are_close_to_the_best_possible(lengths: list[int], count: int) -> None:
    shares = share_evenly([(PartitionRange(0, 0, each, None),) for each in sorted(lengths, reverse=True)], count)
    longest = max(sum(map(len, chain.from_iterable(share))) for share in shares)
    assert longest <= best_possible(lengths, count) * 1.3


def best_possible(lengths: list[int], count: int) -> float:
    """No division of the lengths can do better."""
    ordered = sorted(lengths, reverse=True)
    # Of `each * count + 1` lengths, one share gets one more than `each` of them, whatever the division.
    crowded = (
        sum(ordered[each * count - each : each * count + 1]) for each in range(1, (len(ordered) - 1) // count + 1)
    )
    return max(sum(lengths) / count, ordered[0], *crowded)
