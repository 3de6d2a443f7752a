"""The ledger: a compacted topic beside a dead-letter topic, with an entry for each letter that has been redriven.

A letter's entry is written in the transaction that redrives it, into the partition of the same number. The entry also
names the record inside: another letter of that record may lie anywhere in the dead-letter topic.
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
    """A record as a pipeline read it. Letters that agree in all these fields have the same record inside."""

    pipeline: str
    topic: str
    partition: int
    offset: int
    timestamp: int
    """Distinguishes it from the record at the same offset of a re-created topic; -1 if the letter has none."""

    @classmethod
    def of(cls, letter: DeadLetter) -> SourceRecord:
        source = letter.source
        # Both come from headers, which another program may have written.
        pipeline, topic = (fitted(name, NAME_BYTES) for name in (letter.pipeline, source.topic))
        return cls(pipeline, topic, source.partition, source.offset, source.timestamp)

    @property
    def digest(self) -> bytes:
        """A short hash of the record: there may be millions to remember."""
        told = (self.pipeline, self.topic, self.partition, self.offset, self.timestamp)
        return blake2b(repr(told).encode(errors="replace"), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class LedgerEntry(Document):
    """The outcome of a dead letter, and the run that it is from."""

    SCHEMA_VERSION: ClassVar[int] = 1

    run_key: str
    outcome: Literal["redriven", "parked"]
    at: str
    record: SourceRecord | None = None


def ledger_key(topic_id: str, source_offset: int) -> bytes:
    """Return the key of a letter's entry. It has the topic's id, so that a re-created topic starts without entries."""
    return f"{topic_id}/{source_offset}".encode()


class Redriven:
    """The content of the ledger, gathered entry by entry: letters of these ranges, and the records of all letters."""

    def __init__(self, topic_id: str, ranges: Iterable[PartitionRange]) -> None:
        self._prefix = f"{topic_id}/".encode()
        self._ranges = {each.partition: range(each.start, each.end) for each in ranges}
        self._places: set[Place] = set()
        self.letters: dict[bytes, Place] = {}
        """The places of letters, by the digest of the record inside."""

    def note(self, partition: int, key: bytes | None, value: bytes | None) -> None:
        """Note an entry, or take one back if it has no value; raise DocumentError if another version wrote it."""
        if key is None or not key.startswith(self._prefix):
            return
        number = key[len(self._prefix) :]
        # No offset has more than 19 digits.
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
