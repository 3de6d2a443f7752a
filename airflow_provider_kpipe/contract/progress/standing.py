"""The position of a partition, decided in one place for the plan, the worker, the checkpoint and the gate. Pure.

Four facts are known of a partition: the offset that its group holds, with the mark that a checkpoint puts beside it;
the last offset that a checkpoint has committed, which only checkpoints record; the progress that runs have stored; and
the topic's id. Three rules follow from them:

1. A group with our mark is where a checkpoint left it. A group without a mark, or without an offset although a
   checkpoint has committed one, was changed from outside: its runs start over, and earlier progress no longer counts.
2. All runs that follow each other from there share an `Origin`. A part that any of them has completed is complete for
   all of them, whichever run completed it and however many took over from each other.
3. A checkpoint moves a group only within its origin, and only forwards.
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
    """An offset that a group holds, with the mark beside it if a checkpoint has committed it."""

    offset: int
    mark: CommitMark | None = None
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    """The text that the mark was read from, or the text of another tool."""

    @property
    def beyond(self) -> Spans:
        """The completed spans above the offset that a checkpoint has published."""
        return self.mark.beyond if self.mark else ()

    @property
    def highest_completed(self) -> int:
        """The highest completed offset: one less than the offset, or than the end of the last span above it."""
        return CompletedOffsets(self.offset, self.beyond).highest_completed

    def is_of(self, topic_id: str) -> bool:
        """Tell whether a checkpoint committed it for the topic with this id."""
        return self.mark is not None and self.mark.topic_id == topic_id

    def is_in(self, topic_id: str, origin: Origin) -> bool:
        """Tell whether a checkpoint committed it for a run that follows from this origin, in the topic with this id."""
        return self.mark is not None and (self.mark.topic_id, self.mark.origin) == (topic_id, origin)

    @classmethod
    def of(cls, offset: int, metadata: str | None, leader_epoch: int = NO_EPOCH, where: str = "") -> Held:
        """Read the metadata beside an offset; `where` names its partition and group in an error."""
        return cls(offset, CommitMark.read_text(metadata, where), leader_epoch, metadata or "")


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored state of a partition: the progress beside its offset, and the spans that pieces have completed."""

    offset: int
    progress: StoredProgress
    pieces: Spans = ()
    leader_epoch: int = NO_EPOCH

    @property
    def is_settled(self) -> bool:
        """True if the worker that stored it has come to the end of the range, or has given it up."""
        return self.progress.ended is not None or self.offset >= self.progress.end


@dataclass(frozen=True, slots=True)
class Facts:
    """All known facts of a partition of the topic with this id."""

    topic_id: str
    committed: Held | None = None
    published: Held | None = None
    """The last commit of a checkpoint. It stays the same if the group is moved from outside."""
    stored: Stored | None = None

    @property
    def is_anything_known(self) -> bool:
        """True if the group has a position, or had one."""
        return any(each is not None for each in (self.committed, self.published, self.stored))

    @property
    def is_published(self) -> bool:
        """True if a checkpoint has committed an offset of the partition."""
        return any(self._of_this_topic(each) is not None for each in (self.committed, self.published))

    @property
    def is_recreated(self) -> bool:
        """True if the group's offset belongs to an earlier topic of the same name."""
        return self.committed is not None and self.committed.mark is not None and self.mark is None

    @property
    def held(self) -> Held | None:
        """The group's offset, if it belongs to this topic."""
        return None if self.is_recreated else self.committed

    @property
    def mark(self) -> CommitMark | None:
        """The mark of a checkpoint beside the group's offset, if it is still there and belongs to this topic."""
        return self._of_this_topic(self.committed)

    @property
    def current(self) -> Stored | None:
        """The stored progress, if it counts: if its run follows from the group's present origin."""
        return self.stored if self.stored and self.stored.progress.is_in(self.topic_id, self.origin) else None

    @property
    def owner(self) -> str | None:
        """The pipeline whose runs follow each other from the present origin."""
        current = self.current
        return (self.mark.owner if self.mark else current.progress.owner if current else None) or None

    @property
    def origin(self) -> Origin:
        """The present origin: the one of the runs that follow each other from the group's present position."""
        if self.mark is not None:
            return self.mark.origin
        # Stored progress does not count here: a run that was planned earlier may store at any time.
        published = self._of_this_topic(self.published)
        base = self.held.offset if self.held else None
        return Origin(published.origin.era + 1 if published else 1, base)

    @property
    def highest_number(self) -> int:
        """The highest number of the plans and attempts that have left something here."""
        marks = [each.mark.number for each in (self.committed, self.published) if each and each.mark]
        lease = self.stored.progress.lease if self.stored else NO_LEASE
        return max(0, lease.plan, lease.attempt, *marks)

    def _of_this_topic(self, held: Held | None) -> CommitMark | None:
        mark = held.mark if held else None
        return mark if mark and mark.topic_id == self.topic_id else None


@dataclass(frozen=True, slots=True)
class Standing:
    """The position from which the next run of a group begins in a partition."""

    origin: Origin
    next_offset: int | None
    """None if the group has no position: the plan's wish then says where to begin."""
    done: Spans = ()
    """Completed spans above the next offset."""
    leader_epoch: int = NO_EPOCH
    """The leader epoch of the highest completed record, or a later one."""
    follows: str | None = None
    """The run that has stored more than the group holds, and whose checkpoint never came."""
    ignores: str | None = None
    """The run whose stored progress no longer counts, because the group was moved since."""
    recreated: bool = False
    """True if the group's offset belongs to a deleted topic of the same name."""
    known: int | None = None
    """The last known offset of a group that has no position now: its offset has expired or was deleted."""

    @property
    def highest_completed(self) -> int:
        """The highest completed offset: one less than the next offset, or than the end of the last span above it."""
        return CompletedOffsets(self.next_offset or 0, self.done).highest_completed


def standing_of(facts: Facts) -> Standing:
    """Decide the position of a partition from all known facts."""
    held, current = facts.held, facts.current
    ignores = facts.stored.progress.run_key if facts.stored and not current else None
    if held is None and current is None:
        return Standing(facts.origin, None, ignores=ignores, recreated=facts.is_recreated, known=_known(facts))
    start = held.offset if held else 0
    completed = CompletedOffsets(start, facts.mark.beyond if facts.mark else ())
    if current:
        # Everything below the stored offset is complete: its run began there, or has come there since.
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
    """Return the last known offset of a group that holds none, as a checkpoint or a run has left it."""
    if facts.committed is not None:
        return facts.committed.offset
    if facts.published is not None and facts.published.is_of(facts.topic_id):
        return facts.published.offset
    return facts.stored.offset if facts.stored and facts.stored.progress.topic_id == facts.topic_id else None


def _epoch_at(completed: CompletedOffsets, held: Held | None, stored: Stored | None) -> int:
    known = [each for each in (stored, held) if each is not None]
    at_it = [each for each in known if each.offset == completed.next_offset and not completed.beyond]
    # Otherwise pieces have come to this offset, or further. An epoch that is too high never makes a log look truncated.
    return max((each.leader_epoch for each in at_it or known), default=NO_EPOCH)


def _add(completed: CompletedOffsets, spans: Iterable[Iterable[int]]) -> None:
    for first, after in spans:
        completed.add(first, after)


def completed_in_pieces(topic_id: str, origin: Origin, held: Iterable[tuple[int, StoredProgress]]) -> list[Span]:
    """Return the spans that the pieces of any run have completed, if the run counts within the origin."""
    return [(each.start, stored) for stored, each in held if each.is_in(topic_id, origin) and stored > each.start]
