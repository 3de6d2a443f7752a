"""Pure: where a worker resumes a range, and how far the run of a plan has come in it.

Both are decided from what is stored for the range and from where checkpoints of the same origin have taken the group:
stored progress is forgotten after a week, and the group of a run that goes on is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from airflow_provider_kpipe.contract.clean_text import cleaned
from airflow_provider_kpipe.contract.offsets.completed import CompletedOffsets, Spans
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress
from airflow_provider_kpipe.contract.progress.standing import Held, Stored


def take_on(
    planned: PartitionRange, plan: Plan, lease: Lease, found: Stored | None, reached: Held | None = None
) -> PartitionProgress:
    """Decide where a worker resumes a range: where its run has stored, or another one that it follows.

    Where a later lease is on the partition, it is revoked: its owner has fenced us, or is about to.

    :param reached: where a checkpoint of the same origin has taken the group that the run works in
    """
    if found is None or found.progress.topic_id != plan.topic_id:
        return _from_group(planned, reached)
    if found.progress.lease > lease:
        return PartitionProgress.revoked(planned, found.progress.run_key)
    if found.progress.is_of(plan.run_key, plan.number):
        return _own(planned, found, reached)
    if found.progress.origin != planned.origin:
        return _from_group(planned, reached)
    completed = CompletedOffsets(planned.start, [(planned.start, _at_least(found.offset, planned, reached))])
    for first, after in (*found.pieces, *found.progress.done, *_beyond(reached)):
        completed.add(first, after)
    started = completed.highest_completed >= planned.start
    return PartitionProgress(
        planned,
        completed.next_offset,
        Counts(),
        started=started,
        took_over=found.progress.run_key,
        inherited=_inherited(planned, found, reached),
        done=((planned.start, completed.next_offset), *completed.beyond) if started else (),
    )


def progress_of(
    planned: PartitionRange, plan: Plan, found: Stored | None, reached: Held | None = None
) -> PartitionProgress:
    """Read what is stored as progress of a plan's run; of another run's, only that it is newer counts."""
    if found is None or found.progress.topic_id != plan.topic_id:
        return _from_group(planned, reached)
    if found.progress.is_of(plan.run_key, plan.number):
        return _own(planned, found, reached)
    if found.progress.lease.plan <= plan.number:
        return _from_group(planned, reached)
    overtaken = PartitionProgress.revoked(planned, found.progress.run_key)
    if planned.slot == 0 and found.progress.origin == planned.origin and found.progress.start >= planned.end:
        # The newer run begins behind this one's range: it was complete by then. A piece beyond the first begins where
        # that run has cut its own range, which says nothing of this one's.
        return replace(overtaken, next_offset=planned.end, reason=None)
    return overtaken


def _from_group(planned: PartitionRange, reached: Held | None) -> PartitionProgress:
    """Resume where the plan's group stands, with what is completed above, if nothing is stored any more."""
    next_offset = _at_least(planned.start, planned, reached)
    return replace(PartitionProgress.not_started(planned), next_offset=next_offset, done=_beyond(reached))


def _own(planned: PartitionRange, found: Stored, reached: Held | None) -> PartitionProgress:
    progress = found.progress
    return PartitionProgress(
        planned,
        _at_least(found.offset, planned, reached),
        progress.counts,
        reason=progress.reason and cleaned(progress.reason),
        ended=progress.ended,
        took_over=progress.took_over,
        inherited=progress.inherited,
        done=progress.done,
        seconds=progress.seconds,
    )


def _at_least(stored: int, planned: PartitionRange, reached: Held | None) -> int:
    """Pass over what a checkpoint has published: a range that is done is not done once more."""
    return stored if reached is None else max(stored, min(reached.offset, planned.end))


def _beyond(reached: Held | None) -> Spans:
    return reached.beyond if reached is not None else ()


def _inherited(planned: PartitionRange, found: Stored, reached: Held | None) -> Counts:
    """Take over the counts that the other run's checkpoint has not told of."""
    if is_published(planned, found.offset, reached):
        return Counts()
    return found.progress.counts + found.progress.inherited


def is_published(planned: PartitionRange, offset: int, reached: Held | None = None) -> bool:
    """Tell whether a checkpoint has come to an offset, before the plan or after it."""
    known = (planned.committed, reached.offset if reached is not None else None)
    return any(each is not None and each >= offset for each in known)


def is_superseded(planned: PartitionRange, plan: Plan, checkpoints: Iterable[Held]) -> bool:
    """Tell a plan from before somebody moved the group, where a newer run has gone on from there and was published."""
    marks = [held.mark for held in checkpoints if held.mark is not None and held.is_of(plan.topic_id)]
    return any(mark.number > plan.number and mark.origin != planned.origin for mark in marks)


def unknown_partitions(plan: Plan, stored: Mapping[int, Collection[int]], further: Collection[int]) -> list[int]:
    """List the partitions in which nothing tells how far a run has come: neither what it has stored nor a checkpoint.

    :param stored: by slot, the partitions in which something is stored
    :param further: those in which a checkpoint has come beyond the plan's start
    """
    return [
        planned.partition
        for planned in plan.ranges
        if len(planned)
        and planned.partition not in further
        and any(planned.partition not in stored.get(piece.slot, ()) for piece in planned.pieces)
    ]


def committed_beyond(plan: Plan, checkpoints: Mapping[int, Iterable[Held]]) -> dict[int, Held]:
    """Say where checkpoints of the same origin have taken the group that a run works in, beyond the plan's start.

    :param checkpoints: what the group holds, and what they remember of it, also where somebody has moved it since
    """
    found: dict[int, Held] = {}
    for planned in plan.ranges:
        held = (each for each in checkpoints.get(planned.partition, ()) if each.is_in(plan.topic_id, planned.origin))
        # Another pipeline's outputs are not ours: the checkpoint names it.
        ours = [each for each in held if each.mark is not None and _is_ours(each.mark.owner, plan)]
        furthest = max(ours, key=lambda held: (held.offset, held.beyond), default=None)
        if furthest is None:
            continue
        # Above an offset that stays where it was, pieces may have completed more since.
        if furthest.offset > planned.start or not set(furthest.beyond) <= set(planned.done):
            found[planned.partition] = furthest
    return found


def is_of_another_pipeline(planned: PartitionRange, plan: Plan, found: Stored) -> bool:
    """Tell progress of a pipeline that reads for the same group: each of the two would read a part of the records."""
    return found.progress.is_in(plan.topic_id, planned.origin) and not _is_ours(found.progress.owner, plan)


def _is_ours(owner: str, plan: Plan) -> bool:
    """Tell what the plan's pipeline has left behind, or somebody who has not said whose it is."""
    return owner in ("", plan.owner)
