"""A model of what Kafka holds of a topic's partitions, and of what people may expect of each record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from airflow_provider_kpipe.contract.offsets.ranges import NO_EPOCH, PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from airflow_provider_kpipe.contract.progress.publishing import Target
from airflow_provider_kpipe.contract.progress.standing import Facts, Held, Stored
from airflow_provider_kpipe.planning.ranges import Snapshot

LIVE = "orders"
Asked: TypeAlias = Mapping[int, tuple[int, int]]
"""Offset and leader epoch, by partition."""


@dataclass
class Group:
    """A group in a partition, what checkpoints remember of it, and what runs that work in it have stored."""

    committed: Held | None = None
    published: Held | None = None
    stored: Stored | None = None

    def stands_in(self, topic_id: str) -> bool:
        """Whether its offset is one of a topic, and not of one that had the same name."""
        return self.committed is not None and (self.committed.mark is None or self.committed.is_of(topic_id))

    @property
    def is_published(self) -> bool:
        """Whether a checkpoint has come to what is stored."""
        return self.stored is None or (self.committed is not None and self.committed.offset >= self.stored.offset)

    @property
    def checkpoints(self) -> list[Held]:
        """What checkpoints have left of it."""
        return [held for held in (self.committed, self.published) if held is not None]


@dataclass
class Log:
    """A partition as its leader has it, with the groups in it and what became of its records, by offset."""

    start: int = 0
    end: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    """Of its leaders, each with the offset of its first record."""
    is_cut: bool = False
    """Whether an election has ever lost a record."""
    highest_end: int = 0
    groups: dict[str, Group] = field(default_factory=dict)
    handled: Counter[int] = field(default_factory=Counter)
    """How often a record was handled."""
    handled_in: set[tuple[int, int]] = field(default_factory=set)
    """The numbers of plans, each with the offset of a record that was handled in its run."""
    asked: Counter[int] = field(default_factory=Counter)
    """How often it may be."""
    wanted_from: int = 0
    """Where somebody has put the group: what comes below it is not wanted, also if the log is cut and grows again."""
    unread: set[int] = field(default_factory=set)
    """What the group has to read still, since somebody has put it where it begins."""
    found_at: set[int | None] = field(default_factory=set)
    """Where plans have found the group that somebody had put there, since the last checkpoint."""
    is_begun: bool = False
    """Whether a checkpoint has come after a plan of the group was done: from there on, no wish passes anything over."""

    def group(self, name: str) -> Group:
        return self.groups.setdefault(name, Group())

    def append(self, count: int) -> None:
        for each in range(self.end, self.end + count):
            # Where the log was cut, a run that was asked for before may read what is there now.
            self.asked[each] = max(self.asked[each], 1)
            if each >= self.wanted_from:
                self.unread.add(each)
        self.end += count
        self.highest_end = max(self.highest_end, self.end)

    def begin_anew(self, offset: int) -> None:
        """Somebody asks for everything from an offset again."""
        self.wanted_from = offset
        self.unread = set(range(max(offset, self.start), self.end))
        self.ask_for(range(offset, self.highest_end))

    def ask_for(self, offsets: Iterable[int]) -> None:
        self.asked.update(offsets)

    def is_unseen(self, offset: int | None) -> bool:
        """Where a plan has found the group and no checkpoint has come, nobody can see that it was put there again."""
        return offset in self.found_at

    def delete_up_to(self, offset: int) -> None:
        self.start = offset
        self.unread.difference_update(range(offset))

    def elect(self, end: int) -> None:
        """A new leader, which has the records up to an end."""
        self.is_cut = self.is_cut or end < self.end
        self.epochs = [*((epoch, first) for epoch, first in self.epochs if first < end), (self.epoch + 1, end)]
        self.end = end
        for lost in (each for each in tuple(self.handled) if each >= end):
            del self.handled[lost]
        self.unread = {each for each in self.unread if each < end}

    @property
    def epoch(self) -> int:
        return self.epochs[-1][0]

    def epoch_at(self, offset: int) -> int:
        return max((epoch for epoch, first in self.epochs if first <= offset), default=NO_EPOCH)

    def has_lost(self, offset: int, epoch: int) -> bool:
        """What the leader says who is asked for the end of an epoch by a client that stands at an offset of it."""
        later = (max(first, self.start) for each, first in self.epochs if each > epoch)
        return epoch != NO_EPOCH and next(later, self.end) < offset

    def is_cut_below(self, name: str) -> bool:
        """Whether a group stands where the leader does not know what lay before."""
        held = self.group(name).committed
        return held is not None and self.has_lost(held.offset, held.leader_epoch)

    def missed(self, offsets: Iterable[int]) -> set[int]:
        return self.unread.intersection(offsets)


@dataclass
class Worker:
    """One attempt at a run, at work on a partition."""

    plan: Plan
    lease: Lease
    fence: int
    progress: PartitionProgress
    read_epoch: int
    """Of the record that was read last: when there is a new leader, its client asks for the end of that epoch."""

    @property
    def range(self) -> PartitionRange:
        return self.progress.range


@dataclass
class Checkpoint:
    """Has looked, and not yet committed."""

    plan: Plan
    progress: tuple[PartitionProgress, ...]
    facts: Mapping[int, Facts]
    fence: int


def is_further(found: Target, held: Held) -> bool:
    """An offset that somebody has put there gets its mark in its place."""
    return found.offset >= held.offset if held.mark is None else found.offset > held.offset


@dataclass
class Topic:
    """The topic that is there now, and the fences and numbers of the cluster."""

    generation: int = 0
    logs: list[Log] = field(default_factory=lambda: [Log()])
    fences: Counter[str] = field(default_factory=Counter)
    number: int = 0

    @property
    def id(self) -> str:
        return f"topic-{self.generation}"

    def log(self, which: int) -> Log:
        return self.logs[which % len(self.logs)]

    def facts(self, partition: int, name: str = LIVE) -> Facts:
        group = self.logs[partition].group(name)
        return Facts(self.id, group.committed, group.published, group.stored)

    def snapshot(self) -> Snapshot:
        for log in self.logs:
            held = log.group(LIVE).committed
            if held is None or held.mark is None:
                log.found_at.add(held.offset if held else None)
        logs = dict(enumerate(self.logs))
        return Snapshot(
            LIVE,
            {each: log.start for each, log in logs.items()},
            {each: log.end for each, log in logs.items()},
            facts={each: self.facts(each) for each in logs},
            leader_epochs={each: log.epoch for each, log in logs.items()},
        )

    def truncated(self, asked: Asked) -> dict[int, str]:
        """In the place of `kafka.truncation.truncated`: what the leaders say."""
        return {each: "cut" for each, (offset, epoch) in asked.items() if self.logs[each].has_lost(offset, epoch)}

    def recreate(self, *, keeps_stored: bool, keeps_group: bool) -> None:
        """The broker deletes the offsets of a topic that goes; a worker or a checkpoint may commit one after that."""
        self.generation += 1
        before = [log.group(LIVE) for log in self.logs]
        self.logs = [
            Log(
                groups={
                    LIVE: Group(
                        each.committed if keeps_group and each.committed and each.committed.mark else None,
                        each.published if keeps_group else None,
                        each.stored if keeps_stored else None,
                    )
                }
            )
            for each in before
        ]

    def draw(self) -> int:
        self.number += 1
        return self.number

    def fence(self, transactional_id: str) -> int:
        """Whoever opened it last has fenced the others."""
        self.fences[transactional_id] += 1
        return self.fences[transactional_id]
