"""Every record that was produced: its kind, where it lies, and whether readers may see it."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from tests.torture.checker.anomalies import Anomaly, Gathered
from tests.torture.checker.dump import Cluster, Header, Row, aborted_file, committed_file, read_rows
from tests.torture.checker.events import Produced

UNSEEN = -1


class Place(NamedTuple):
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.offset}"


@dataclass(slots=True)
class Placed:
    """The records of one partition that readers of committed records see, or saw once."""

    offsets: array[int] = field(default_factory=lambda: array("q"))
    ids: array[int] = field(default_factory=lambda: array("l"))
    low: int = 0
    """Where the log begins in the end: what lies before has left it."""
    high: int = 0

    def between(self, start: int, end: int | None = None) -> Iterator[tuple[int, int]]:
        """Offsets and ids."""
        first = bisect_left(self.offsets, start)
        last = len(self.offsets) if end is None else bisect_left(self.offsets, end)
        return zip(self.offsets[first:last], self.ids[first:last], strict=True)

    @property
    def behind_last(self) -> int:
        return self.offsets[-1] + 1 if self.offsets else 0


def digest_of_headers(headers: Iterable[Sequence[str | None]]) -> int:
    told = repr([tuple(each) for each in headers]).encode()
    return int.from_bytes(blake2b(told, digest_size=8).digest())


class Sources:
    """Ids are dense whole numbers: what is known of them lies in arrays."""

    def __init__(self) -> None:
        self.kinds: dict[int, str] = {}
        self.topics: dict[str, dict[int, Placed]] = {}
        self._names: list[str] = []
        self._topic, self._partition, self._offset = array("h"), array("l"), array("q")
        self._digest, self._headers = array("Q"), array("Q")
        self.again: dict[int, list[Place]] = {}
        """Further places of a record, as where a redrive has put it back into its source."""
        self.aborted: set[int] = set()
        """Records that only readers of uncommitted records see, and those that a producer has aborted."""
        self.maybe: set[int] = set()
        """Nobody can tell any more whether they were to be read."""
        self.anomalies = Gathered()

    @classmethod
    def read(cls, folder: Path, cluster: Cluster, topics: Iterable[str], produced: Sequence[Produced]) -> Sources:
        sources = cls()
        for topic in topics:
            sources._read_topic(folder, cluster, topic)
        for each in produced:
            sources._note(each)
        for partitions in sources.topics.values():
            for placed in partitions.values():
                _sort(placed)
        return sources

    def _read_topic(self, folder: Path, cluster: Cluster, topic: str) -> None:
        ends = cluster.ends[topic]
        self.topics[topic] = {each: Placed(low=at.low, high=at.high) for each, at in ends.items()}
        self._names.append(topic)
        for row in read_rows(committed_file(folder, topic)):
            if (number := row.id) is None:
                self.anomalies.add("unreadable", topic, "a record in the source has no id", str(_place(topic, row)))
            else:
                self._put(number, topic, row.partition, row.offset)
                self._digest[number] = int(row.digest or "0", 16)
                self._headers[number] = digest_of_headers(row.headers)
        for row in read_rows(aborted_file(folder, topic)):
            if (number := row.id) is not None:
                self.aborted.add(number)

    def _put(self, number: int, topic: str, partition: int, offset: int) -> None:
        self._grow(number)
        if self._partition[number] == UNSEEN:
            self._topic[number] = self._names.index(topic)
            self._partition[number], self._offset[number] = partition, offset
        else:
            self.again.setdefault(number, []).append(Place(topic, partition, offset))
        placed = self.topics[topic][partition]
        placed.offsets.append(offset)
        placed.ids.append(number)

    def _grow(self, number: int) -> None:
        more = number + 1 - len(self._partition)
        if more > 0:
            more = max(more, len(self._partition) // 2, 1_000)
            self._topic.extend([UNSEEN] * more)
            self._partition.extend([UNSEEN] * more)
            self._offset.extend([UNSEEN] * more)
            self._digest.extend([0] * more)
            self._headers.extend([0] * more)

    def _note(self, produced: Produced) -> None:
        topic, partition = produced.topic, produced.partition
        low = self.topics[topic][partition].low
        for number, offset, kind in produced.records:
            self.kinds[number] = kind
            if self.is_visible(number):
                if produced.transaction == "aborted":
                    self._say("a record of an aborted transaction is seen by readers", topic, number)
                continue
            if produced.transaction == "aborted":
                self.aborted.add(number)
            elif offset is None or produced.transaction == "unknown":
                if low and (offset is None or offset < low):
                    self.maybe.add(number)
            elif offset < low:
                self._put(number, topic, partition, offset)
            else:
                self._say("a record that was acknowledged is not in its topic", topic, number)

    def _say(self, what: str, topic: str, number: int) -> None:
        self.anomalies.add("unreadable", topic, what, number)

    def is_visible(self, number: int) -> bool:
        return number < len(self._partition) and self._partition[number] != UNSEEN

    def place(self, number: int) -> Place:
        """The first one."""
        return Place(self._names[self._topic[number]], self._partition[number], self._offset[number])

    def places(self, number: int) -> list[Place]:
        return [self.place(number), *self.again.get(number, ())] if self.is_visible(number) else []

    def offset_in(self, number: int) -> tuple[int, int]:
        """Partition and offset of its first place."""
        return self._partition[number], self._offset[number]

    def is_gone(self, number: int) -> bool:
        """Whether its log begins behind it by now."""
        place = self.place(number)
        return place.offset < self.topics[place.topic][place.partition].low

    def has_digest(self, number: int, digest: str) -> bool:
        return self._digest[number] == int(digest or "0", 16)

    def has_headers(self, number: int, headers: Sequence[Header]) -> bool:
        return self._headers[number] == digest_of_headers(headers)

    def said(self, number: int) -> str:
        shown = ", ".join(map(str, self.places(number))) or "nowhere"
        return f"{number} ({self.kinds.get(number, 'unknown')}, {shown})"

    def all_anomalies(self) -> list[Anomaly]:
        return list(self.anomalies)


def _place(topic: str, row: Row) -> Place:
    return Place(topic, row.partition, row.offset)


def _sort(placed: Placed) -> None:
    """Records that have left the log were added at the end."""
    if any(later < earlier for earlier, later in zip(placed.offsets, placed.offsets[1:], strict=False)):
        order: Mapping[int, int] = dict(zip(placed.offsets, placed.ids, strict=True))
        placed.offsets = array("q", sorted(order))
        placed.ids = array("l", (order[offset] for offset in placed.offsets))
