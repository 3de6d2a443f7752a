"""What the coordinator of transactions knows, and does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from tests.simulation.scheduler import Simulation

State: TypeAlias = Literal["empty", "ongoing", "commit", "abort"]

# A late request comes most of all in the midst of what its transactional id does next.
LATE_NOW = 0.002


class Written(Protocol):
    """A log, or a group: what a marker is written to."""

    def is_held_by(self, producer: int) -> bool:
        """Whether readers wait for the end of its transaction."""

    def mark(self, producer: int, epoch: int, commit: bool) -> None: ...


class Transaction:
    """That of one transactional id. In `commit` and `abort`, its markers are on their way."""

    def __init__(self, name: str, producer: int) -> None:
        self.name, self.producer = name, producer
        self.epoch = -1
        self.state: State = "empty"
        self.parts: list[Written] = []
        self.todo: list[Written] = []
        self.timeout, self.begun_at = 60.0, 0.0

    @property
    def is_ending(self) -> bool:
        return self.state in ("commit", "abort")

    @property
    def holds_readers(self) -> bool:
        """Whether it is open, and somebody waits for its end: one that was only announced keeps nobody."""
        return self.state == "ongoing" and any(part.is_held_by(self.producer) for part in self.parts)

    def is_of(self, epoch: int) -> bool:
        """Whether it is open, and that of a producer with this epoch."""
        return self.epoch == epoch and self.state == "ongoing"


class Transactions:
    """The coordinator. Markers are written after the end of a transaction is answered, one log at a time."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.by_id: dict[str, Transaction] = {}
        self._ending: list[Transaction] = []
        self._ongoing: list[Transaction] = []
        self._late: list[tuple[Transaction | None, Callable[[], object]]] = []
        self.due = float("inf")

    def get(self, name: str) -> Transaction:
        found = self.by_id.get(name)
        if found is None:
            found = self.by_id[name] = Transaction(name, len(self.by_id) + 1)
        return found

    @property
    def are_over(self) -> bool:
        return not self._ending and not self._ongoing

    # Requests

    def touch(self, transaction: Transaction) -> None:
        """AddPartitionsToTxn and AddOffsetsToTxn begin one."""
        if transaction.state == "empty":
            transaction.state, transaction.begun_at = "ongoing", self._simulation.now
            self._ongoing.append(transaction)
            self.due = min(self.due, transaction.begun_at + transaction.timeout)

    def end(self, transaction: Transaction, commit: bool) -> None:
        """EndTxn."""
        if transaction in self._ongoing:
            self._ongoing.remove(transaction)
        transaction.state = "commit" if commit else "abort"
        transaction.todo, transaction.parts = transaction.parts, []
        if transaction.todo:
            self._ending.append(transaction)
        else:
            transaction.state = "empty"

    def fence(self, transaction: Transaction) -> None:
        """InitProducerId finds one open: whoever began it may not go on."""
        transaction.epoch += 1
        self.end(transaction, commit=False)

    def forget(self, written: Written) -> None:
        """Of a log that is deleted."""
        for each in self.by_id.values():
            each.parts = [part for part in each.parts if part is not written]
            each.todo = [part for part in each.todo if part is not written]
        for each in list(self._ending):
            self._end_if_marked(each)

    def comes_late(self, transaction: Transaction | None, apply: Callable[[], object]) -> None:
        """A request that was lost arrives one day; one without a transaction, to a group."""
        self._late.append((transaction, apply))

    # In the background

    def is_busy(self) -> bool:
        if self._ending:
            return True
        return bool(self._late) and any(self._is_due(each) for each, _ in self._late)

    def act(self) -> None:
        for at, (transaction, apply) in enumerate(self._late):
            if self._is_due(transaction) or not self._ending:
                del self._late[at]
                apply()
                return
        if self._ending:
            self._write_marker(self._ending[int(self._simulation.chance.random() * len(self._ending))])

    def note_time(self) -> None:
        """End what has timed out."""
        now = self._simulation.now
        for each in list(self._ongoing):
            if now > each.begun_at + each.timeout:
                self._simulation.note("transaction timed out", each.name, each.epoch)
                self.fence(each)
        self.due = min((each.begun_at + each.timeout for each in self._ongoing), default=float("inf"))

    def settle(self) -> None:
        """Write all markers now."""
        while self._ending:
            self._write_marker(self._ending[0])

    def _is_due(self, transaction: Transaction | None) -> bool:
        is_met = transaction is not None and transaction.state == "ongoing"
        return is_met or self._simulation.chance.random() < LATE_NOW

    def _write_marker(self, transaction: Transaction) -> None:
        at = int(self._simulation.chance.random() * len(transaction.todo))
        transaction.todo.pop(at).mark(transaction.producer, transaction.epoch, transaction.state == "commit")
        self._end_if_marked(transaction)

    def _end_if_marked(self, transaction: Transaction) -> None:
        if not transaction.todo:
            self._ending.remove(transaction)
            transaction.state = "empty"
