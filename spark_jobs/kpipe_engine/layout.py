"""Pure: which Spark tasks work on which blocks of partitions."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.scaling import PartitionScaling

Block = tuple[PartitionRange, ...]

# Each has clients of its own, with threads and queues.
MOST_AT_ONCE_IN_A_TASK = 8


@dataclass(frozen=True, slots=True)
class Task:
    """Blocks for one Spark task, of which so many are worked on at once."""

    blocks: tuple[Block, ...]
    at_once: int = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """Tasks in the order in which they start, and how many of them may run at a time: None is as many as fit."""

    tasks: tuple[Task, ...]
    at_once: int | None = None


def lay_out(plan: Plan, scaling: PartitionScaling, slots: int) -> Layout:
    """`slots` is how many tasks the cluster runs at a time."""
    blocks, most = plan.blocks, scaling.max_concurrent_partitions
    if scaling.execution_mode == "parallelize_across_partitions":
        return Layout(_interleaved(blocks, slots, len(blocks) if most is None else most))
    tasks = tuple(Task((block,)) for block in blocks)
    return Layout(tasks, None if most is None or most >= len(tasks) else most)


def _interleaved(blocks: Sequence[Block], slots: int, most: int) -> tuple[Task, ...]:
    """As many tasks as there are slots, each with its share of the blocks and of those at work."""
    count = min(slots, most, len(blocks))
    shares = share_evenly(blocks, count)
    at_once = [1] * count
    for _ in range(most - count):
        # A place goes to where the most blocks would wait.
        index = max(range(count), key=lambda each: len(shares[each]) - at_once[each])
        if at_once[index] < len(shares[index]):
            at_once[index] += 1
    return tuple(
        Task(share, min(places, MOST_AT_ONCE_IN_A_TASK)) for share, places in zip(shares, at_once, strict=True)
    )


def share_evenly(blocks: Sequence[Block], count: int) -> list[tuple[Block, ...]]:
    """Give each block, the largest first, to whoever has the least so far."""
    shares: list[list[Block]] = [[] for _ in range(count)]
    heap = [(0, index) for index in range(count)]
    for block in blocks:
        load, index = heapq.heappop(heap)
        shares[index].append(block)
        heapq.heappush(heap, (load + sum(map(len, block)), index))
    return [tuple(share) for share in shares]
