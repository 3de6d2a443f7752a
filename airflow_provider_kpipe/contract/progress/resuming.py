"""Pure functions that decide where a worker resumes a range, and how far the run of a plan has come in it.

Both follow from what is stored for the range, and from where checkpoints of the same origin have moved the group: the
broker forgets stored progress after a week, but keeps the group of a run that still works.
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
    """Decide where a worker resumes a range: at the stored offset of its own run, or of one that its run follows.

    If a later lease is on the partition, the range is revoked: the lease's owner has fenced this worker, or soon will.

    :param reached: where a checkpoint of the same origin has moved the group that the run works in
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
    """Return the progress of a plan's run from what is stored. Of another run's, only that it is newer counts."""
    if found is None or found.progress.topic_id != plan.topic_id:
        return _from_group(planned, reached)
    if found.progress.is_of(plan.run_key, plan.number):
        return _own(planned, found, reached)
    if found.progress.lease.plan <= plan.number:
        return _from_group(planned, reached)
    overtaken = PartitionProgress.revoked(planned, found.progress.run_key)
    if planned.slot == 0 and found.progress.origin == planned.origin and found.progress.start >= planned.end:
        # The newer run begins after this range, which was complete by then. A piece beyond the first begins where that
        # run has cut its own range, which says nothing about this one.
        return replace(overtaken, next_offset=planned.end, reason=None)
    return overtaken


def _from_group(planned: PartitionRange, reached: Held | None) -> PartitionProgress:
    """Resume at the position of the plan's group, with the spans completed above, if no stored progress counts."""
    next_offset = _at_least(planned.start, planned, reached)
    return replace(PartitionProgress.not_started(planned), next_offset=next_offset, done=_beyond(reached))


def _own(planned: PartitionRange, found: Stored, reached: Held | None) -> PartitionProgress:
    progress = found.progress
    return PartitionProgress(
        planned,
        _at_least(found.offset, planned, reached),
        progress.counts,
        **{**progress.carried, "reason": progress.reason and cleaned(progress.reason)},
    )


def _at_least(stored: int, planned: PartitionRange, reached: Held | None) -> int:
    """Skip what a checkpoint has published, so that no run does it again."""
    return stored if reached is None else max(stored, min(reached.offset, planned.end))


def _beyond(reached: Held | None) -> Spans:
    return reached.beyond if reached is not None else ()


def _inherited(planned: PartitionRange, found: Stored, reached: Held | None) -> Counts:
    """Take over the counts that the other run's checkpoint has not reported."""
    if is_published(planned, found.offset, reached):
        return Counts()
    return found.progress.counts + found.progress.inherited


def is_published(planned: PartitionRange, offset: int, reached: Held | None = None) -> bool:
    """Tell whether a checkpoint has reached an offset, before the plan was made or after."""
    known = (planned.committed, reached.offset if reached is not None else None)
    return any(each is not None and each >= offset for each in known)


def is_superseded(planned: PartitionRange, plan: Plan, checkpoints: Iterable[Held]) -> bool:
    """Tell whether the group was moved after the plan was made, and a newer run resumed there and was published."""
    marks = [held.mark for held in checkpoints if held.mark is not None and held.is_of(plan.topic_id)]
    return any(mark.number > plan.number and mark.origin != planned.origin for mark in marks)


def unknown_partitions(plan: Plan, stored: Mapping[int, Collection[int]], further: Collection[int]) -> list[int]:
    """List the partitions in which neither stored progress nor a checkpoint shows how far a run has come.

    :param stored: by slot, the partitions in which something is stored
    :param further: the partitions in which a checkpoint has come beyond the plan's start
    """
    return [
        planned.partition
        for planned in plan.ranges
        if len(planned)
        and planned.partition not in further
        and any(planned.partition not in stored.get(piece.slot, ()) for piece in planned.pieces)
    ]


def committed_beyond(plan: Plan, checkpoints: Mapping[int, Iterable[Held]]) -> dict[int, Held]:
    """Return where checkpoints of the same origin have moved a run's working group, beyond the plan's start.

    :param checkpoints: what the group holds, and the last commits of checkpoints, even if it was moved since
    """
    found: dict[int, Held] = {}
    for planned in plan.ranges:
        held = (each for each in checkpoints.get(planned.partition, ()) if each.is_in(plan.topic_id, planned.origin))
        # Another pipeline's outputs are not ours; the checkpoint step names that pipeline.
        ours = [each for each in held if each.mark is not None and _is_ours(each.mark.owner, plan)]
        furthest = max(ours, key=lambda held: (held.offset, held.beyond), default=None)
        if furthest is None:
            continue
        # The offset may be the same while pieces have completed more above it since.
        if furthest.offset > planned.start or not set(furthest.beyond) <= set(planned.done):
            found[planned.partition] = furthest
    return found


def is_of_another_pipeline(planned: PartitionRange, plan: Plan, found: Stored) -> bool:
    """Tell whether another pipeline stores progress in the same group: each would read only a part of the records."""
    return found.progress.is_in(plan.topic_id, planned.origin) and not _is_ours(found.progress.owner, plan)


def _is_ours(owner: str, plan: Plan) -> bool:
    """Tell whether the owner is the plan's pipeline, or is not given."""
    return owner in ("", plan.owner)
