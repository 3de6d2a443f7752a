"""The ledger: which dead letters of a topic have been redriven, in a compacted topic beside it.

A letter's entry is written in the transaction that redrives it, into the partition of the same number. It names the
record inside, too: another letter of that record may lie anywhere in the dead-letter topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar, Literal, NamedTuple

from airflow_provider_kpipe.contract.dead_letters.dead_letter import NAME_BYTES, DeadLetter, fitted
from airflow_provider_kpipe.contract.documents import Document
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange


class Place(NamedTuple):
    """A dead letter's partition and offset in its topic."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A record as a pipeline read it. Letters that agree in all of this have the same one inside."""

    pipeline: str
    topic: str
    partition: int
    offset: int
    timestamp: int
    """Tells it from the record at the same offset of a topic that was made anew; -1 where no letter says it."""

    @classmethod
    def of(cls, letter: DeadLetter) -> SourceRecord:
        source = letter.source
        # Both come from headers, which somebody else may have written.
        pipeline, topic = (fitted(name, NAME_BYTES) for name in (letter.pipeline, source.topic))
        return cls(pipeline, topic, source.partition, source.offset, source.timestamp)

    @property
    def digest(self) -> bytes:
        """There may be millions of them to remember."""
        told = (self.pipeline, self.topic, self.partition, self.offset, self.timestamp)
        return blake2b(repr(told).encode(errors="replace"), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class LedgerEntry(Document):
    """What became of a dead letter, and by which run."""

    SCHEMA_VERSION: ClassVar[int] = 1

    run_key: str
    outcome: Literal["redriven", "parked"]
    at: str
    record: SourceRecord | None = None


def ledger_key(topic_id: str, source_offset: int) -> bytes:
    """With the id, which a topic that is made anew does not keep: its dead letters start afresh."""
    return f"{topic_id}/{source_offset}".encode()


class Redriven:
    """What the ledger says, gathered entry by entry: letters of these ranges, and the records inside all letters."""

    def __init__(self, topic_id: str, ranges: Iterable[PartitionRange]) -> None:
        self._prefix = f"{topic_id}/".encode()
        self._ranges = {each.partition: range(each.start, each.end) for each in ranges}
        self._places: set[Place] = set()
        self.letters: dict[bytes, Place] = {}
        """By the digest of the record inside."""

    def note(self, partition: int, key: bytes | None, value: bytes | None) -> None:
        """An entry without a value takes an earlier one back; DocumentError for one that another version wrote."""
        if key is None or not key.startswith(self._prefix):
            return
        number = key[len(self._prefix) :]
        # No offset has more digits.
        if not number.isdigit() or len(number) > 19:
            return
        place = Place(partition, int(number))
        if value is None:
            self._take_back(place)
            return
        if place.offset in self._ranges.get(partition, ()):
            self._places.add(place)
        entry = LedgerEntry.read_text(value.decode(errors="replace"), f"entry {key.decode(errors='replace')!r}")
        if entry is not None and entry.record is not None:
            self.letters[entry.record.digest] = place

    def _take_back(self, place: Place) -> None:
        self._places.discard(place)
        for digest in [digest for digest, letter in self.letters.items() if letter == place]:
            del self.letters[digest]

    def __contains__(self, place: object) -> bool:
        return place in self._places

    def __len__(self) -> int:
        return len(self._places)
