"""Pure: which writers may have left a transaction open, from what runs have stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.standing import Stored

StoredBySlot: TypeAlias = Mapping[int, Mapping[int, Stored]]
"""What is stored by slot and by partition; slot 0 holds the first or only piece of each."""


def slots_of(first: Mapping[int, Stored]) -> dict[int, list[int]]:
    """Say which partitions have a piece in each slot beyond the first."""
    slots: dict[int, list[int]] = {}
    for partition, stored in first.items():
        for slot in range(1, stored.progress.at_work.count):
            slots.setdefault(slot, []).append(partition)
    return slots


def writers_left_open(plan: Plan, held: StoredBySlot, being_stored: Mapping[int, Collection[int]]) -> list[str]:
    """Name the transactional ids of ranges and pieces, of any run, that nobody has brought to an end.

    A worker stores its lease before it writes anything, and the end of its range, or why it gave it up, with the last
    of it. One that ended over its lease shows only in that it is being stored. Partitions and writers that a plan newer
    than this one has a lease on are left to that one.

    :param being_stored: by slot, partitions for which something is stored in a transaction that is open
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
    # Neighbours of a partition share its writer.
    return sorted(left - newer)


def _may_write(partition: int, slot: int, stored: Stored, first: Stored, plan: Plan) -> bool:
    if stored.is_settled or first.progress.lease.plan > plan.number:
        return False
    # Whoever took a partition on in pieces has fenced those of the run before.
    return slot == 0 or stored.progress.number == first.progress.at_work.number
