"""Pure: what a worker that takes a partition on finds there, and where it goes on."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_provider_kpipe.contract.completed_offsets import CompletedOffsets, Span
from airflow_provider_kpipe.contract.lease import Lease
from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress import Counts, PartitionProgress, StoredProgress


def take_on(
    planned: PartitionRange,
    plan: Plan,
    lease: Lease,
    stored: int | None,
    metadata: str | None,
    others: Iterable[Span] = (),
) -> PartitionProgress:
    """Go on from what this run stored, or from what the run before stored after the plan was made.

    Where a later lease is on the partition, it is revoked: its owner has fenced us, or is about to.

    :param others: what the run before completed in pieces beyond the first
    """
    found = StoredProgress.read_text(metadata)
    if stored is None or found is None:
        return PartitionProgress.not_started(planned)
    if found.lease is not None and found.lease > lease:
        return PartitionProgress.revoked(planned, found.run_key)
    if found.is_of(plan.run_key, plan.created_at):
        return PartitionProgress.of(planned, plan.run_key, stored, metadata, plan.created_at)
    if takes_over(planned, plan, found):
        completed = completed_by(found, stored, others, planned.start)
        if completed.highest_completed >= planned.start:
            done = ((planned.start, completed.next_offset), *completed.beyond)
            next_offset = completed.next_offset
            return PartitionProgress(planned, next_offset, Counts(), took_over=found.run_key, done=done)
        # It stood where our plan begins, or was only about to begin; its checkpoint may yet come, and is no stranger's.
        return PartitionProgress(planned, planned.start, Counts(), started=False, took_over=found.run_key)
    return PartitionProgress.not_started(planned)


def completed_by(found: StoredProgress, stored: int, others: Iterable[Span], start: int) -> CompletedOffsets:
    """What a run leaves to whoever goes on from it at `start`: its own, and what it found completed."""
    completed = CompletedOffsets(start, [(found.start, stored), *others])
    for first, after in found.done:
        completed.add(first, after)
    return completed


def completed_in_pieces(
    run_key: str | None, planned_at: str | None, held: Iterable[tuple[int, str | None]]
) -> list[Span]:
    """What a run has completed in its pieces beyond the first, of what their groups hold: where a piece has not begun,
    that may be another run's.

    :param planned_at: when its plan was made, where that is known
    :param held: offsets, and the metadata beside them
    """
    found = [(StoredProgress.read_text(metadata), stored) for stored, metadata in held]
    return [(each.start, stored) for each, stored in found if each is not None and each.is_of(run_key, planned_at)]


def takes_over(planned: PartitionRange, plan: Plan, found: StoredProgress) -> bool:
    """Whether what another run has stored counts for the one of this plan."""
    return counts_for(found, planned.committed, planned.committed_by, continues_group=plan.continues_group)


def counts_for(
    found: StoredProgress, committed: int | None, committed_by: str | None, *, continues_group: bool
) -> bool:
    """Whether what a run has stored counts for another one, whose plan finds the group at `committed`: both go on where
    the group stands, at one place. A plan has to see it as its run will.

    :param committed_by: the run whose checkpoint put the group there; None if it was somebody else
    :param continues_group: whether the other one goes on where the group stands
    """
    # Its own checkpoint may have come while it was still at work, or one that published where it began.
    published = committed_by is not None and (
        committed_by in (found.run_key, found.took_over) or committed == found.start
    )
    same_base = found.is_based_on(committed, committed_by)
    return continues_group and found.continues_group and (same_base or published)
