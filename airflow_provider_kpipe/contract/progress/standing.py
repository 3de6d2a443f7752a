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

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_provider_kpipe.contract.offsets.completed import CompletedOffsets, Span, Spans
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.offsets.ranges import NO_EPOCH
from airflow_provider_kpipe.contract.progress.checkpoint import CommitMark
from airflow_provider_kpipe.contract.progress.lease import NO_LEASE
from airflow_provider_kpipe.contract.progress.progress import StoredProgress


@dataclass(frozen=True, slots=True)
class Held:
    """An offset that a group holds, and the mark beside it if a checkpoint has committed it."""

    offset: int
    mark: CommitMark | None = None
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    """The text that the mark was read from, or that somebody else has put there."""

    @property
    def beyond(self) -> Spans:
        """Spans above the offset that a checkpoint has told of."""
        return self.mark.beyond if self.mark else ()

    @property
    def highest_completed(self) -> int:
        """One less than the offset, or than the end of the last span above it."""
        return CompletedOffsets(self.offset, self.beyond).highest_completed

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
    """That of the highest record that is completed, or a later one."""
    follows: str | None = None
    """The run that has stored more than the group holds: its checkpoint never came."""
    ignores: str | None = None
    """The run whose stored progress counts no more: somebody has moved the group since."""
    recreated: bool = False
    """Whether the group stands in a topic that had the same name, and is gone."""
    known: int | None = None
    """Where the group is known to have stood, if it stands nowhere now: its offset has expired or was deleted."""

    @property
    def highest_completed(self) -> int:
        """One less than the next offset, or than the end of the last span above it."""
        return CompletedOffsets(self.next_offset or 0, self.done).highest_completed


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
        leader_epoch=_epoch_at(completed, held, current),
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


def _epoch_at(completed: CompletedOffsets, held: Held | None, stored: Stored | None) -> int:
    known = [each for each in (stored, held) if each is not None]
    for each in known:
        if each.offset == completed.next_offset and not completed.beyond:
            return each.leader_epoch
    # Pieces have come there, or further. An epoch that is too high says of no log that it was cut.
    return max((each.leader_epoch for each in known), default=NO_EPOCH)


def _add(completed: CompletedOffsets, spans: Iterable[Iterable[int]]) -> None:
    for first, after in spans:
        completed.add(first, after)


def completed_in_pieces(topic_id: str, origin: Origin, held: Iterable[tuple[int, StoredProgress]]) -> list[Span]:
    """Say which spans the pieces of any run have completed that counts within the origin."""
    return [(each.start, stored) for stored, each in held if each.is_in(topic_id, origin) and stored > each.start]
