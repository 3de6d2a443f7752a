"""Pure: where a partition stands, decided in one place for the plan, the worker, the checkpoint and the gate.

What is known of a partition: the offset that its group holds, with the mark that a checkpoint puts beside it; the last
offset that a checkpoint has committed, which nobody but a checkpoint writes down; the progress that runs have stored;
and the topic's id. Three rules follow from it:

1. A group with our mark stands where a checkpoint left it. One without, or without an offset although a checkpoint has
   committed one, was put there by somebody: its runs begin anew, and what was stored before counts no more.
2. All runs that follow each other from there share an `Origin`. What any of them has completed is complete for all of
   them, however many took over from each other: whose it was does not matter.
3. Only within its origin does a checkpoint move a group, and only forwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from airflow_provider_kpipe.contract.checkpoint import CommitMark
from airflow_provider_kpipe.contract.clean_text import cleaned
from airflow_provider_kpipe.contract.completed_offsets import CompletedOffsets, Span, Spans
from airflow_provider_kpipe.contract.lease import NO_LEASE, Lease
from airflow_provider_kpipe.contract.offsets import NO_EPOCH, PartitionRange
from airflow_provider_kpipe.contract.origin import Origin
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress import Counts, PartitionProgress, StoredProgress


@dataclass(frozen=True, slots=True)
class Held:
    """An offset that a group holds, and the mark beside it if a checkpoint has committed it."""

    offset: int
    mark: CommitMark | None = None
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    """The text that the mark was read from, or that somebody else has put there."""

    def is_of(self, topic_id: str) -> bool:
        """Tell a commit of a checkpoint to the topic with this id."""
        return self.mark is not None and self.mark.topic_id == topic_id

    def is_in(self, topic_id: str, origin: Origin) -> bool:
        """Tell a commit that runs have come to which follow each other from an origin."""
        return self.mark is not None and (self.mark.topic_id, self.mark.origin) == (topic_id, origin)

    @classmethod
    def of(cls, offset: int, metadata: str | None, leader_epoch: int = NO_EPOCH, where: str = "") -> Held:
        """Read what lies beside an offset; `where` is whose it is, for an error."""
        return cls(offset, CommitMark.read_text(metadata, where), leader_epoch, metadata or "")


@dataclass(frozen=True, slots=True)
class Stored:
    """What runs have stored of a partition: the progress beside its offset, and what their pieces have completed."""

    offset: int
    progress: StoredProgress
    pieces: Spans = ()
    leader_epoch: int = NO_EPOCH

    @property
    def is_settled(self) -> bool:
        """Whether whoever stored it has come to the end of the range, or has given it up."""
        return self.progress.ended is not None or self.offset >= self.progress.end


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is known of a partition of the topic with this id."""

    topic_id: str
    committed: Held | None = None
    published: Held | None = None
    """What a checkpoint has committed last. Nobody who moves the group from outside changes it."""
    stored: Stored | None = None

    @property
    def is_anything_known(self) -> bool:
        """Whether the group stands somewhere, or did."""
        return any(each is not None for each in (self.committed, self.published, self.stored))

    @property
    def is_published(self) -> bool:
        """Whether a checkpoint has come to the partition."""
        return any(self._of_this_topic(each) is not None for each in (self.committed, self.published))

    @property
    def is_recreated(self) -> bool:
        """Whether the group's offset is one of a topic that had the same name."""
        return self.committed is not None and self.committed.mark is not None and self.mark is None

    @property
    def held(self) -> Held | None:
        """The group's offset, if it is one of this topic."""
        return None if self.is_recreated else self.committed

    @property
    def mark(self) -> CommitMark | None:
        """What a checkpoint has put beside the group's offset, and nobody has removed."""
        return self._of_this_topic(self.committed)

    @property
    def current(self) -> Stored | None:
        """What is stored, if it counts: by the runs that follow each other from where the group stands now."""
        return self.stored if self.stored and self.stored.progress.is_in(self.topic_id, self.origin) else None

    @property
    def owner(self) -> str | None:
        """The pipeline whose runs follow each other here."""
        current = self.current
        return (self.mark.owner if self.mark else current.progress.owner if current else None) or None

    @property
    def origin(self) -> Origin:
        """Where the runs begin that follow each other from where the group stands now."""
        if self.mark is not None:
            return self.mark.origin
        # What is stored says nothing here: a run that was planned before may store at any time.
        published = self._of_this_topic(self.published)
        base = self.held.offset if self.held else None
        return Origin(published.origin.era + 1 if published else 1, base)

    @property
    def highest_number(self) -> int:
        """Of the plans and attempts that have left something here."""
        marks = [each.mark.number for each in (self.committed, self.published) if each and each.mark]
        lease = self.stored.progress.lease if self.stored else NO_LEASE
        return max(0, lease.plan, lease.attempt, *marks)

    def _of_this_topic(self, held: Held | None) -> CommitMark | None:
        mark = held.mark if held else None
        return mark if mark and mark.topic_id == self.topic_id else None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the next run of a group begins in a partition."""

    origin: Origin
    next_offset: int | None
    """None where the group stands nowhere: the plan's wish says where to begin."""
    done: Spans = ()
    """Spans above it that are completed."""
    leader_epoch: int = NO_EPOCH
    follows: str | None = None
    """The run that has stored more than the group holds: its checkpoint never came."""
    ignores: str | None = None
    """The run whose stored progress counts no more: somebody has moved the group since."""
    recreated: bool = False
    """Whether the group stands in a topic that had the same name, and is gone."""
    known: int | None = None
    """Where the group is known to have stood, if it stands nowhere now: its offset has expired or was deleted."""


def standing_of(facts: Facts) -> Standing:
    """Decide where a partition stands, from all that is known about it."""
    held, current = facts.held, facts.current
    ignores = facts.stored.progress.run_key if facts.stored and not current else None
    if held is None and current is None:
        return Standing(facts.origin, None, ignores=ignores, recreated=facts.is_recreated, known=_known(facts))
    start = held.offset if held else 0
    completed = CompletedOffsets(start, facts.mark.beyond if facts.mark else ())
    if current:
        # Below its offset, everything is complete: its run has begun there, or has come there since.
        completed.add(start, current.offset)
        _add(completed, (*current.pieces, *current.progress.done))
    further = current is not None and (held is None or completed.next_offset > held.offset)
    return Standing(
        facts.origin,
        completed.next_offset,
        completed.beyond,
        leader_epoch=_epoch_at(completed.next_offset, held, current),
        follows=current.progress.run_key if current and further else None,
        ignores=ignores,
    )


def _known(facts: Facts) -> int | None:
    """Say where a group that holds no offset has stood, as a checkpoint or a run has found it."""
    if facts.committed is not None:
        return facts.committed.offset
    if facts.published is not None and facts.published.is_of(facts.topic_id):
        return facts.published.offset
    return facts.stored.offset if facts.stored and facts.stored.progress.topic_id == facts.topic_id else None


def _epoch_at(next_offset: int, held: Held | None, stored: Stored | None) -> int:
    known = [each for each in (stored, held) if each is not None]
    for each in known:
        if each.offset == next_offset:
            return each.leader_epoch
    # Pieces have come there. An epoch that is too high says of no log that it was cut.
    return max((each.leader_epoch for each in known), default=NO_EPOCH)


def _add(completed: CompletedOffsets, spans: Iterable[Iterable[int]]) -> None:
    for first, after in spans:
        completed.add(first, after)


def completed_in_pieces(topic_id: str, origin: Origin, held: Iterable[tuple[int, StoredProgress]]) -> list[Span]:
    """Say which spans the pieces of any run have completed that counts within the origin."""
    return [(each.start, stored) for stored, each in held if each.is_in(topic_id, origin) and stored > each.start]


def take_on(
    planned: PartitionRange,
    plan: Plan,
    lease: Lease,
    found: Stored | None,
    committed: int | None = None,
) -> PartitionProgress:
    """Decide where a worker resumes a range: where its run has stored, or another one that it follows.

    Where a later lease is on the partition, it is revoked: its owner has fenced us, or is about to.

    :param committed: where a checkpoint of the same origin has taken the group that the run works in
    """
    if found is None or found.progress.topic_id != plan.topic_id:
        return _from_group(planned, committed)
    if found.progress.lease > lease:
        return PartitionProgress.revoked(planned, found.progress.run_key)
    if found.progress.is_of(plan.run_key, plan.number):
        return _own(planned, found, committed)
    if found.progress.origin != planned.origin:
        return _from_group(planned, committed)
    completed = CompletedOffsets(planned.start, [(planned.start, _at_least(found.offset, planned, committed))])
    _add(completed, (*found.pieces, *found.progress.done))
    started = completed.highest_completed >= planned.start
    return PartitionProgress(
        planned,
        completed.next_offset,
        Counts(),
        started=started,
        took_over=found.progress.run_key,
        inherited=_inherited(planned, found, committed),
        done=((planned.start, completed.next_offset), *completed.beyond) if started else (),
    )


def _inherited(planned: PartitionRange, found: Stored, committed: int | None) -> Counts:
    """Take over the counts that the other run's checkpoint has not told of."""
    if is_published(planned, found.offset, committed):
        return Counts()
    return found.progress.counts + found.progress.inherited


def is_published(planned: PartitionRange, offset: int, committed: int | None) -> bool:
    """Tell whether a checkpoint has come to an offset, before the plan or after it."""
    return max(-1 if each is None else each for each in (planned.committed, committed)) >= offset


def _own(planned: PartitionRange, found: Stored, committed: int | None) -> PartitionProgress:
    progress = found.progress
    return PartitionProgress(
        planned,
        _at_least(found.offset, planned, committed),
        progress.counts,
        reason=progress.reason and cleaned(progress.reason),
        ended=progress.ended,
        took_over=progress.took_over,
        inherited=progress.inherited,
        done=progress.done,
        seconds=progress.seconds,
    )


def is_superseded(planned: PartitionRange, plan: Plan, checkpoints: Iterable[Held]) -> bool:
    """Tell a plan from before somebody moved the group, where a newer run has gone on from there and was published."""
    marks = [held.mark for held in checkpoints if held.mark is not None and held.is_of(plan.topic_id)]
    return any(mark.number > plan.number and mark.origin != planned.origin for mark in marks)


def committed_beyond(plan: Plan, checkpoints: Mapping[int, Iterable[Held]]) -> dict[int, Held]:
    """Say where checkpoints of the same origin have taken the group that a run works in, beyond the plan's start.

    :param checkpoints: what the group holds, and what they remember of it, also where somebody has moved it since
    """
    found: dict[int, Held] = {}
    for planned in plan.ranges:
        ours = [each for each in checkpoints.get(planned.partition, ()) if each.is_in(plan.topic_id, planned.origin)]
        furthest = max(ours, key=lambda held: held.offset, default=None)
        if furthest is not None and furthest.offset > planned.start:
            found[planned.partition] = furthest
    return found


def is_of_another_pipeline(planned: PartitionRange, plan: Plan, found: Stored) -> bool:
    """Tell progress of a pipeline that reads for the same group: each of the two would read a part of the records."""
    owner = found.progress.owner
    return found.progress.is_in(plan.topic_id, planned.origin) and owner not in ("", plan.owner)


def _at_least(stored: int, planned: PartitionRange, committed: int | None) -> int:
    """Pass over what a checkpoint has published: a range that is done is not done once more."""
    return stored if committed is None else max(stored, min(committed, planned.end))


def _from_group(planned: PartitionRange, committed: int | None) -> PartitionProgress:
    """Resume where the plan's group stands, if nothing is stored: progress is forgotten after a week."""
    if committed is None or committed <= planned.start:
        return PartitionProgress.not_started(planned)
    return PartitionProgress(planned, min(committed, planned.end), Counts(), started=False)


def progress_of(
    planned: PartitionRange, plan: Plan, found: Stored | None, committed: int | None = None
) -> PartitionProgress:
    """Read what is stored as progress of a plan's run; of another run's, only that it is newer counts."""
    if found is None or found.progress.topic_id != plan.topic_id:
        return _from_group(planned, committed)
    if found.progress.is_of(plan.run_key, plan.number):
        return _own(planned, found, committed)
    if found.progress.lease.plan <= plan.number:
        return _from_group(planned, committed)
    overtaken = PartitionProgress.revoked(planned, found.progress.run_key)
    if found.progress.origin == planned.origin and found.progress.start >= planned.end:
        # The newer run begins behind this one's range: it was complete by then.
        return replace(overtaken, next_offset=planned.end, reason=None)
    return overtaken
