"""Pure functions that find the writers that may have left a transaction open, from what runs have stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.standing import Stored

StoredBySlot: TypeAlias = Mapping[int, Mapping[int, Stored]]
"""The stored progress by slot and by partition; slot 0 holds the first or only piece of each partition."""


def slots_of(first: Mapping[int, Stored]) -> dict[int, list[int]]:
    """Return, for each slot beyond the first, the partitions that have a piece in it."""
    slots: dict[int, list[int]] = {}
    for partition, stored in first.items():
        for slot in range(1, stored.progress.at_work.count):
            slots.setdefault(slot, []).append(partition)
    return slots


def writers_left_open(plan: Plan, held: StoredBySlot, being_stored: Mapping[int, Collection[int]]) -> list[str]:
    """Return the transactional ids of ranges and pieces, of any run, that no worker has brought to an end.

    A worker stores its lease before it writes anything. With its last write, it stores the end of its range, or why it
    gave the range up. A worker that died while it stored its lease shows only in `being_stored`. Partitions and writers
    on which a plan newer than this one has a lease are left to that plan.

    :param being_stored: by slot, the partitions for which an open transaction stores something
    """
    left = {plan.transactional_id(each, slot) for slot, of_slot in being_stored.items() for each in of_slot}
    newer = set()
    for slot, of_slot in held.items():
        for partition, stored in of_slot.items():
            writer = plan.transactional_id(partition, slot)
            if stored.progress.lease.plan > plan.number:
                newer.add(writer)
            elif _may_write(partition, slot, stored, held[0][partition], plan):
                left.add(writer)
    # Several partitions share a writer, and a newer plan may use it for one of the others.
    return sorted(left - newer)


def _may_write(partition: int, slot: int, stored: Stored, first: Stored, plan: Plan) -> bool:
    if stored.is_settled or first.progress.lease.plan > plan.number:
        return False
    # A run that takes a partition on in pieces fences the pieces of the run before.
    return slot == 0 or stored.progress.number == first.progress.at_work.number
