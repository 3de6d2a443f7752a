"""Pure: assigns blocks of partitions to Spark tasks."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.scaling import PartitionScaling
from airflow_provider_kpipe.contract.plan import Plan

Block = tuple[PartitionRange, ...]

# Each block at work has clients of its own, with threads and queues.
MOST_AT_ONCE_IN_A_TASK = 8


@dataclass(frozen=True, slots=True)
class Task:
    """Blocks for one Spark task, and how many of them it works on at once."""

    blocks: tuple[Block, ...]
    at_once: int = 1


@dataclass(frozen=True, slots=True)
class TaskLayout:
    """Tasks in the order in which they start, and how many of them may run at a time: None means as many as fit."""

    tasks: tuple[Task, ...]
    at_once: int | None = None


def assign_tasks(plan: Plan, scaling: PartitionScaling, cores: int) -> TaskLayout:
    """Assign the blocks of a plan to tasks. `cores`, the tasks that run at a time, matters only for interleaving."""
    blocks, most = plan.blocks, scaling.max_concurrent_partitions
    if scaling.interleaves:
        return TaskLayout(_interleaved(blocks, cores, len(blocks) if most is None else most))
    tasks = tuple(Task((block,)) for block in blocks)
    return TaskLayout(tasks, None if most is None or most >= len(tasks) else most)


def _interleaved(blocks: Sequence[Block], cores: int, most: int) -> tuple[Task, ...]:
    """Return at most as many tasks as cores, each with its share of the places at which blocks are worked on."""
    count = min(cores, most, len(blocks))
    places = share_evenly(blocks, min(most, len(blocks), count * MOST_AT_ONCE_IN_A_TASK))
    tasks: list[list[Block]] = [[] for _ in range(count)]
    at_once = [0] * count
    heap = [(0, index) for index in range(count)]
    for place in sorted(places, key=_work_in, reverse=True):
        load, index = heapq.heappop(heap)
        tasks[index] += place
        at_once[index] += 1
        if at_once[index] < MOST_AT_ONCE_IN_A_TASK:
            heapq.heappush(heap, (load + _work_in(place), index))
    return tuple(
        Task(tuple(sorted(own, key=_size_of, reverse=True)), most_of_it)
        for own, most_of_it in zip(tasks, at_once, strict=True)
    )


def _size_of(block: Block) -> int:
    return sum(map(len, block))


def _work_in(blocks: Sequence[Block]) -> int:
    return sum(map(_size_of, blocks))


def share_evenly(blocks: Sequence[Block], count: int) -> list[tuple[Block, ...]]:
    """Give each block, the largest first, to the share that has the least so far."""
    shares: list[list[Block]] = [[] for _ in range(count)]
    heap = [(0, index) for index in range(count)]
    for block in blocks:
        load, index = heapq.heappop(heap)
        shares[index].append(block)
        heapq.heappush(heap, (load + _size_of(block), index))
    return [tuple(share) for share in shares]
