"""Consumer groups: offsets, those of open transactions, and members."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import NamedTuple, TypeAlias

Place: TypeAlias = tuple[str, int]

NONE = -1001


class Held(NamedTuple):
    """What a group holds for a partition."""

    offset: int
    metadata: str | None = None
    leader_epoch: int = -1


OnCommit: TypeAlias = Callable[[str, Place, Held | None, Held], None]
NOTHING = Held(NONE)


class Group:
    """Offsets by topic and partition; `pending` are those of transactions that are open, by producer."""

    def __init__(self, name: str, on_commit: list[OnCommit]) -> None:
        self.name = name
        self.offsets: dict[Place, Held] = {}
        self.pending: dict[int, dict[Place, Held]] = {}
        self.members: list[tuple[str, str]] = []
        """Client id and host."""
        self._epochs: dict[int, int] = {}
        self._written = count()
        self._order: dict[Place, int] = {}
        self._pending_order: dict[tuple[int, Place], int] = {}
        """When what is held, and what is pending, was written: a transaction that ends does not undo what was
        committed after its own offset, outside of it."""
        self._on_commit = on_commit

    def put(self, place: Place, held: Held) -> None:
        old = self.offsets.get(place)
        self.offsets[place] = held
        self._order[place] = next(self._written)
        for each in self._on_commit:
            each(self.name, place, old, held)

    def is_pending(self, place: Place) -> bool:
        return any(place in offsets for offsets in self.pending.values())

    def are_pending(self, places: Iterable[Place]) -> bool:
        return bool(self.pending) and any(map(self.is_pending, places))

    def is_held_by(self, producer: int) -> bool:
        return bool(self.pending.get(producer))

    def take(self, producer: int, epoch: int, offsets: dict[Place, Held]) -> bool:
        """TxnOffsetCommit; False where a producer with a younger epoch was here."""
        if epoch < self._epochs.get(producer, -1):
            return False
        self._epochs[producer] = epoch
        self.pending.setdefault(producer, {}).update(offsets)
        self._pending_order |= {(producer, place): next(self._written) for place in offsets}
        return True

    def mark(self, producer: int, epoch: int, commit: bool) -> None:
        """The transaction of a producer ends."""
        self._epochs[producer] = max(epoch, self._epochs.get(producer, -1))
        held = self.pending.pop(producer, None)
        if held and commit:
            for place, new in held.items():
                if place not in self.offsets or self._pending_order[producer, place] > self._order.get(place, -1):
                    self.put(place, new)

    def forget(self, topic: str | None = None) -> None:
        """Offsets expire, or are deleted, of a topic or of all."""
        self.offsets = {place: held for place, held in self.offsets.items() if topic is not None and place[0] != topic}
