"""Watch over the other partitions of a run, if a pipeline's policies depend on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from airflow_provider_kpipe.contract.pipeline.policies import DeadLetterBudget
from airflow_provider_kpipe.contract.progress.progress import Counts
from kpipe_engine.assignment.other_workers import OtherWorkers
from kpipe_engine.errors import BudgetExceededError, PartitionHaltedError

OwnCounts = Callable[[], Sequence[Counts]]


class RunMonitor(Protocol):
    """Monitor of the run, which a worker asks once before each chunk and when too many records have faulted."""

    def look(self) -> None:
        """Stop, by raising, if another partition has stopped the pipeline."""

    def allow_fault(self, *, as_dead_letter: bool) -> None:
        """Give the chunk up, by raising, before a fault that is one too many for the run."""

    def check(self) -> None:
        """Give the chunk up, by raising, if too many of the records up to its end have faulted."""


class NoMonitor:
    """Null object: every partition works without regard to the others."""

    def look(self) -> None:
        """Do nothing: no partition stops another."""

    def allow_fault(self, *, as_dead_letter: bool) -> None:
        """Allow it: there is no limit."""

    def check(self) -> None:
        """Do nothing: the end of a chunk has no limit either."""


class SharedMonitor:
    """Monitor that compares the faults of a run with its limit, and obeys a partition that stops the pipeline.

    :param slots: slots whose pieces are looked at before each chunk; the others only when too much has faulted
    """

    def __init__(
        self, others: OtherWorkers, slots: Collection[int], budget: DeadLetterBudget, own_counts: OwnCounts
    ) -> None:
        self._others, self._slots = others, slots
        self._budget = budget
        self._own_counts = own_counts
        self._has_looked_everywhere = False
        # This many more records may fault, whatever the others do. Any error in it only makes the worker count again.
        self._left = 0

    def look(self) -> None:
        self._others.look(self._slots)
        self._has_looked_everywhere, self._left = False, 0
        if (stopped := self._others.stopped) is not None:
            partition, reason = stopped
            raise PartitionHaltedError(f"partition {partition} stopped the pipeline: {reason}")

    def allow_fault(self, *, as_dead_letter: bool) -> None:
        self._left -= 1
        if self._left < 0:
            self._left = self._count_left() - 1
        if self._left < 0 and self._look_everywhere():
            self._left = self._count_left() - 1
        if self._left < 0:
            one_more = Counts(read=1, dead_lettered=1) if as_dead_letter else Counts(read=1, skipped=1)
            self._give_up(self._so_far + one_more)

    def check(self) -> None:
        # If the ratio of each worker is within the limit, so is that of the run.
        if self._budget.ratio_is_exceeded_by(*_of(self._own)):
            self._look_everywhere()
            self._give_up(self._so_far)

    @property
    def _own(self) -> Counts:
        return sum(self._own_counts(), Counts())

    @property
    def _so_far(self) -> Counts:
        return self._own + self._others.counts

    def _count_left(self) -> int:
        return self._budget.faults_left(*_of(self._so_far))

    def _look_everywhere(self) -> bool:
        """Look at all slots, once in a chunk, and tell whether this was the time."""
        if self._has_looked_everywhere:
            return False
        self._has_looked_everywhere = True
        self._others.look()
        return True

    def _give_up(self, counts: Counts) -> None:
        if (reason := self._budget.exceeded_by(*_of(counts))) is not None:
            raise BudgetExceededError(
                f"{reason}: the chunk in which that was found is given up, and what was stored before it stays; fix "
                "the cause or raise the limit, then run again"
            )


def _of(counts: Counts) -> tuple[int, int, int]:
    return counts.dead_lettered, counts.read, counts.skipped
