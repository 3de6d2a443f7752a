"""The books of the soak: what was produced is written, dead-lettered or filtered, each record once. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.soak.records import Kind, kind_of, produced_by_kind

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter: which record is in it, and how often that has become one."""

    id: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Found:
    """What the topics hold."""

    fresh: tuple[int, ...]
    """Ids in the source topic, as the producer sent them."""
    returned: tuple[int, ...]
    """Those that redrives have put back there."""
    written: tuple[int, ...]
    dead: tuple[Letter, ...]
    parked: tuple[Letter, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """The sums that checkpoints, or redrives, tell in XCom."""

    read: int = 0
    written: int = 0
    returned: int = 0
    """Records that redrives put back into the source topic."""
    dead_lettered: int = 0
    filtered: int = 0
    skipped: int = 0
    lost: int = 0
    parked: int = 0

    def __add__(self, other: Told) -> Told:
        return Told(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def told_by_checkpoint(document: Mapping[str, Any]) -> Told:
    """The sums of the checkpoint task's XCom."""
    counts = [each["counts"] for each in document["partitions"]]
    names = ("read", "written", "dead_lettered", "filtered", "skipped", "lost")
    return Told(**{name: sum(each[name] for each in counts) for name in names})


def told_by_redrive(document: Mapping[str, Any]) -> Told:
    """The sums of the redrive task's XCom; what it has written lies where its target says."""
    written = {"returned" if document["target"] == "source" else "written": document["written"]}
    return Told(dead_lettered=document["dead_lettered"], parked=document["outcomes"]["parked"], **written)


@dataclass(frozen=True, slots=True)
class Accounts:
    """Everything that has to add up, when nothing is under way any more."""

    produced: int
    found: Found
    checkpoints: Told
    redrives: Told
    lag: int

    @property
    def fates(self) -> dict[str, int]:
        """How many records have ended in which way; filtered ones leave nothing but their count."""
        return {
            "produced": self.produced,
            "written": len(set(self.found.written)),
            "dead-lettered": len(self._dead - set(self.found.written)),
            "filtered": self.checkpoints.filtered,
            "redriven to the source": len(self.found.returned),
            "redriven to the output": self.redrives.written,
            "duplicates": self.duplicates,
        }

    @property
    def duplicates(self) -> int:
        return sum(len(_twice(ids)) for ids in self._each_once())

    @property
    def misses(self) -> list[str]:
        """All that does not add up, in words; none if everything does."""
        return [*self._by_record(), *self._by_sum()]

    @property
    def _dead(self) -> set[int]:
        return {each.id for each in (*self.found.dead, *self.found.parked)}

    def _each_once(self) -> tuple[Iterable[Any], ...]:
        return self.found.fresh, self.found.written, self.found.dead, [each.id for each in self.found.parked]

    def _by_record(self) -> Iterator[str]:
        everything = range(self.produced)
        written, dead = set(self.found.written), self._dead
        names = ("in the source topic", "in the output", "in the dead letters with one attempt", "among the parked")
        for name, ids in zip(names, self._each_once(), strict=True):
            yield from _named(f"twice {name}", _twice(ids))
        yield from _named("never sent, and in the source topic", set(self.found.fresh) - set(everything))
        yield from _named("not in the source topic", set(everything) - set(self.found.fresh))
        for kind, has_to_be, must_not_be in (
            ("good", written, dead),
            ("mendable", written, set[int]()),
            ("poison", dead, written),
            ("unwanted", set(everything), written | dead),
        ):
            ids = {number for number in everything if kind_of(number) == kind}
            yield from _named(f"{kind}, and lost", ids - has_to_be)
            yield from _named(f"{kind}, and in the wrong topic", ids & must_not_be)

    def _by_sum(self) -> Iterator[str]:
        seen, told = self.found, self.checkpoints + self.redrives
        kinds, ends = produced_by_kind(self.produced), self.checkpoints
        fates = self.fates
        sums: Sequence[tuple[str, int, int]] = (
            (
                "produced = written + dead-lettered + filtered",
                self.produced,
                fates["written"] + fates["dead-lettered"] + fates["filtered"],
            ),
            ("records in the source topic = read by checkpoints", len(seen.fresh) + len(seen.returned), ends.read),
            (
                "read = written + dead-lettered + filtered, in checkpoints",
                ends.read,
                ends.written + ends.dead_lettered + ends.filtered,
            ),
            ("records in the output = told as written", len(seen.written), told.written),
            ("dead letters = told as dead-lettered", len(seen.dead), told.dead_lettered),
            ("records put back into the source topic = told as put back", len(seen.returned), told.returned),
            ("letters among the parked = told as parked", len(seen.parked), told.parked),
            ("unwanted records = told as filtered", _count(kinds, "unwanted"), told.filtered),
            ("skipped = 0", told.skipped, 0),
            ("lost = 0", told.lost, 0),
            ("lag of the group = 0", self.lag, 0),
        )
        yield from (f"{name}: {left:,} and {right:,}" for name, left, right in sums if left != right)


def _count(kinds: Counter[Kind], kind: Kind) -> int:
    return kinds[kind]


def _twice(ids: Iterable[Any]) -> list[Any]:
    return [each for each, count in Counter(ids).items() if count > 1]


def _named(what: str, ids: Iterable[Any]) -> Iterator[str]:
    some = sorted(ids, key=str)
    if some:
        more = "" if len(some) <= MOST_NAMED else " and more"
        yield f"{len(some):,} records are {what}: {', '.join(map(str, some[:MOST_NAMED]))}{more}"
