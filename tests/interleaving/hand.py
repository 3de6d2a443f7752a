"""A worker that is stepped, and what it has taken on."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_provider_kpipe.contract.job import Job
from kpipe_engine.partition_worker import PartitionWorker
from kpipe_engine.stop_signal import StopSignal
from tests.kit.workers import producer_of, session_of

Rank = tuple[int, int]
"""The numbers of a plan and an attempt: those of later ones are higher."""


class Killed(BaseException):
    """The worker is dead: nothing of it runs any more."""


@dataclass(slots=True)
class Hand:
    """A worker, and where somebody interferes with it."""

    name: str
    worker: PartitionWorker
    stop_signal: StopSignal
    job: Job
    state: str = "new"
    trap: str | None = None
    """What happens at its next store."""

    @property
    def rank(self) -> Rank:
        return self.job.plan.number, self.job.attempt

    @property
    def slot(self) -> int:
        """Where its piece stands among those of the partition."""
        slot: int = self.worker.assignment[0].range.slot
        return slot

    def dies_waiting(self) -> None:
        """In the midst of its next store, as soon as it waits for what the broker says of its records."""
        session = session_of(self.worker)

        def die() -> None:
            producer_of(self.worker).purge()
            raise Killed("killed before it is sent")

        session.wait = die


@dataclass(slots=True)
class Taken:
    """Who has taken on what last: nobody from before may store there."""

    runs: dict[tuple[str, int], int] = field(default_factory=dict)
    """By group and partition, the number of the plan. A run that has the first piece has taken all of them."""
    pieces: dict[tuple[str, int, int], Rank] = field(default_factory=dict)
    """By group, partition and slot. Of an attempt at the same plan, each piece is taken when it begins."""

    def by(self, hand: Hand) -> None:
        group, (number, _) = hand.job.plan.working_group, hand.rank
        for state in hand.worker.assignment.ours:
            piece = group, state.partition, hand.slot
            self.pieces[piece] = max(hand.rank, self.pieces.get(piece, hand.rank))
            if hand.slot == 0:
                run = group, state.partition
                self.runs[run] = max(number, self.runs.get(run, number))

    def is_from(self, hand: Hand, partition: int) -> bool:
        group, (number, _) = hand.job.plan.working_group, hand.rank
        later_run = self.runs.get((group, partition), number) > number
        return later_run or self.pieces.get((group, partition, hand.slot), hand.rank) > hand.rank
