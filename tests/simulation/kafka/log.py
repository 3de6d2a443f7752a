"""The log of a partition: records, markers, what is open, and who led when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from confluent_kafka import KafkaError, Message

Headers: TypeAlias = list[tuple[str, str | bytes | None]] | None


class Row(NamedTuple):
    """A record on its way into a log."""

    key: bytes | None
    value: bytes | None
    headers: Headers = None
    timestamp: int = 0

    @property
    def size(self) -> int:
        return len(self.key or b"") + len(self.value or b"")


class Part:
    """What a transaction has in one log."""

    __slots__ = ("first", "is_aborted", "producer")

    def __init__(self, producer: int, first: int) -> None:
        self.producer, self.first = producer, first
        self.is_aborted: bool | None = None
        """None as long as it is open."""


class Entry:
    """A record, or a marker, which has no row."""

    __slots__ = ("epoch", "gone", "message", "part", "row")

    def __init__(self, row: Row | None, part: Part | None, epoch: int) -> None:
        self.row, self.part, self.epoch = row, part, epoch
        self.gone = False
        """Whether compaction has taken it."""
        self.message: Message | None = None

    def is_seen(self, committed: bool) -> bool:
        if self.row is None or self.gone:
            return False
        return not committed or self.part is None or self.part.is_aborted is False


class Log:
    """Offsets count from 0. What lies before `start` has left the log, and is kept for checks."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic, self.partition = topic, partition
        self.entries: list[Entry] = []
        self.start = 0
        self.open: dict[int, Part] = {}
        self.epoch = 0
        self._epochs = [(0, 0)]
        self._producers: dict[int, int] = {}

    @property
    def end(self) -> int:
        return len(self.entries)

    @property
    def stable_end(self) -> int:
        """The last stable offset."""
        return min([each.first for each in self.open.values()], default=len(self.entries)) if self.open else self.end

    def end_for(self, committed: bool) -> int:
        return self.stable_end if committed else len(self.entries)

    def is_held_by(self, producer: int) -> bool:
        return producer in self.open

    def append(self, rows: Iterable[Row], producer: int | None = None, epoch: int = 0) -> int | None:
        """Write records, of a transaction if a producer is named; the code of the refusal if they are refused."""
        part = None
        if producer is not None:
            if epoch < self._producers.get(producer, -1):
                return KafkaError.INVALID_PRODUCER_EPOCH
            self._producers[producer] = epoch
            part = self.open.get(producer)
            if part is None:
                part = self.open[producer] = Part(producer, len(self.entries))
        self.entries += [Entry(row, part, self.epoch) for row in rows]
        return None

    def mark(self, producer: int, epoch: int, commit: bool) -> None:
        """Write the marker that ends a transaction."""
        if epoch < self._producers.get(producer, -1):
            return
        self._producers[producer] = epoch
        part = self.open.pop(producer, None)
        if part is not None:
            part.is_aborted = not commit
        self.entries.append(Entry(None, part, self.epoch))

    def read(self, committed: bool = True, first: int | None = None) -> Iterator[tuple[int, Row]]:
        """What a reader gets, with offsets."""
        for at in range(self.start if first is None else first, self.end_for(committed)):
            entry = self.entries[at]
            if entry.row is not None and entry.is_seen(committed):
                yield at, entry.row

    def message_at(self, at: int) -> Message:
        entry = self.entries[at]
        if entry.message is None:
            assert entry.row is not None
            key, value, headers, timestamp = entry.row
            entry.message = Message(
                topic=self.topic,
                partition=self.partition,
                offset=at,
                key=key,
                value=value,
                headers=headers or None,
                timestamp=(1, timestamp),
                leader_epoch=entry.epoch,
            )
        return entry.message

    def offset_at(self, timestamp: int, committed: bool) -> int:
        """The first one at or after a moment; -1 where there is none."""
        return next((at for at, row in self.read(committed) if row.timestamp >= timestamp), -1)

    # What befalls it

    def delete_before(self, offset: int) -> None:
        """As retention and DeleteRecords do. Of leaders whose records have left the log, the last one is taken to have
        begun where it starts now, and the others are forgotten."""
        self.start = max(self.start, min(offset, self.end))
        before = [epoch for epoch, first in self._epochs if first <= self.start]
        if before:
            self._epochs = [(before[-1], self.start), *self._epochs[len(before) :]]

    def compact(self) -> None:
        """Take every record that has a younger one of its key. Offsets stay."""
        youngest: set[bytes | None] = set()
        for entry in reversed(self.entries[self.start : self.stable_end]):
            if entry.row is None:
                continue
            if (entry.part is not None and entry.part.is_aborted) or entry.row.key in youngest:
                entry.gone = True
            else:
                youngest.add(entry.row.key)

    def elect(self, lost: int = 0) -> None:
        """Another broker leads from now on; an unclean one has not got the last so many offsets."""
        end = max(self.start, self.end - lost)
        for entry in self.entries[end:]:
            # Without its marker, a transaction is open, and nobody is going to end it.
            if entry.row is None and entry.part is not None and entry.part.first < end:
                entry.part.is_aborted = None
                self.open[entry.part.producer] = entry.part
        del self.entries[end:]
        self.open = {producer: part for producer, part in self.open.items() if part.first < end}
        self.epoch += 1
        self._epochs = [each for each in self._epochs if each[1] < end or each[1] == 0]
        self._epochs.append((self.epoch, end))

    def end_of_epoch(self, epoch: int) -> int:
        """The offset after the last one that a leader up to this epoch has written."""
        return next((first for each, first in self._epochs if each > epoch), self.end)
