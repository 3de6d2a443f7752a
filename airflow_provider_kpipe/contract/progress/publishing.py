"""Pure functions that decide where a checkpoint moves a group in a partition, or why it leaves the group alone."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_kpipe.contract.offsets.completed import CompletedOffsets
from airflow_provider_kpipe.contract.offsets.metadata import most_spans
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.checkpoint import CommitMark
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from airflow_provider_kpipe.contract.progress.standing import Facts


class MovedError(Exception):
    """Move of the group away from its position in the plan, by another pipeline or tool."""


@dataclass(frozen=True, slots=True)
class Target:
    """The offset to commit, and the mark to put beside it."""

    offset: int
    mark: CommitMark


def target_of(plan: Plan, progress: PartitionProgress, facts: Facts) -> Target | None:
    """Decide where a run moves its group in a partition; None if it has nothing to publish, or no right to."""
    return _further(plan, progress, facts) or _in_its_place(plan, progress, facts)


def _further(plan: Plan, progress: PartitionProgress, facts: Facts) -> Target | None:
    if progress.ended == "revoked":
        # The newer run resumes from this progress, and publishes it.
        return None
    if plan.is_published:
        return _published_window(plan, progress, facts)
    if not plan.continues_group:
        return _own_group(plan, progress)
    return _continued(plan, progress, facts)


def _in_its_place(plan: Plan, progress: PartitionProgress, facts: Facts) -> Target | None:
    """Keep the offset of a group that has no mark, and add a mark: a later reset to the same offset is noticed then."""
    held = facts.committed
    if held is None or held.mark is not None or not (plan.continues_group or plan.is_published):
        return None
    if not is_untouched(plan, progress, facts):
        return None
    mark = CommitMark(plan.run_key, plan.number, plan.topic_id, progress.range.group_origin, plan.owner)
    return Target(held.offset, mark)


def is_untouched(plan: Plan, progress: PartitionProgress, facts: Facts) -> bool:
    """Tell whether the group is where the plan has found it, or where a run of the same origin has moved it."""
    origin = progress.range.group_origin
    if facts.mark is not None:
        return (facts.mark.origin, facts.mark.owner) == (origin, plan.owner)
    return _committed(facts) == progress.range.committed and facts.origin == origin


def _continued(plan: Plan, progress: PartitionProgress, facts: Facts) -> Target | None:
    planned, committed = progress.range, _committed(facts)
    if not is_untouched(plan, progress, facts):
        if not progress.started:
            return None
        raise MovedError(_moved(plan, progress, facts))
    if committed is not None:
        # A plan begins at the stored offset of an earlier run, whose checkpoint may never come.
        if progress.next_offset < committed:
            return None
        target = _target(plan, progress, planned.group_origin, facts)
        # Even if the offset stays, the mark reports what pieces have completed above it: stored progress may expire
        # before a run resumes from it.
        known = facts.mark.beyond if facts.mark else ()
        return target if target.offset > committed or target.mark.beyond != known else None
    # An empty range counts as read: the next plan must not begin at a later end.
    followed = not progress.started and facts.current is not None and facts.current.offset >= planned.start
    if not (progress.next_offset > planned.start or progress.beyond or progress.complete or followed):
        return None
    return _target(plan, progress, planned.group_origin, facts)


def _own_group(plan: Plan, progress: PartitionProgress) -> Target | None:
    """Decide for a run that works in a group of its own, from which no other run resumes."""
    if not progress.started and not progress.complete:
        return None
    return _target(plan, progress, progress.range.origin)


def _published_window(plan: Plan, progress: PartitionProgress, facts: Facts) -> Target | None:
    """Decide for a run that has read a window around the group's offset: it moves the group to the end of its read."""
    planned, committed = progress.range, _committed(facts)
    if not len(planned) or not progress.started:
        return None
    # The plan passes over nothing that could be read: a window may begin above its group where the log does.
    lowest = planned.start if planned.committed is None else min(planned.start, planned.committed)
    if not is_untouched(plan, progress, facts) or (committed is not None and committed < lowest):
        raise MovedError(_moved(plan, progress, facts))
    if committed is not None and progress.next_offset <= committed:
        return None
    return _target(plan, progress, planned.group_origin, facts)


def _target(plan: Plan, progress: PartitionProgress, origin: Origin, facts: Facts | None = None) -> Target:
    # Spans that a checkpoint has published since the plan was made stay done.
    before = facts.mark.beyond if facts and facts.mark else ()
    completed = CompletedOffsets(progress.next_offset, (*progress.beyond, *before))
    # Spans that do not fit are read again.
    beyond = completed.beyond[: most_spans(plan.metadata_bytes)]
    mark = CommitMark(plan.run_key, plan.number, plan.topic_id, origin, plan.owner, beyond)
    return Target(completed.next_offset, mark)


def _committed(facts: Facts) -> int | None:
    return facts.held.offset if facts.held else None


def _moved(plan: Plan, progress: PartitionProgress, facts: Facts) -> str:
    planned, mark = progress.range, facts.mark
    by = f" by run {mark.run_key} of pipeline {mark.owner!r}" if mark else ""
    return (
        f"partition {planned.partition}: group {plan.group!r} stood at {planned.committed} when the plan was made and "
        f"is at {_committed(facts)} now: someone else moved it{by}, so nothing was committed; start a new run"
    )
