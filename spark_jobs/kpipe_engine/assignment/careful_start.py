"""Careful start of a worker that follows one that died: small chunks, which grow while all goes well."""

from __future__ import annotations

from collections.abc import Sequence

from kpipe_engine.assignment.precautions import Precautions, Suspicion
from kpipe_engine.assignment.range_state import RangeState

GROWTH = 8


class CarefulStart:
    """Choice of the ranges and the size of the next chunk. Without a death or suspicion, the size is the pipeline's."""

    def __init__(self, precautions: Precautions, most: int) -> None:
        self._suspicion: Suspicion | None = None
        self._most = self._records = most
        self.is_alone = precautions.follows_death
        """Tells whether fetching has to wait while records are handled: a worker that dies then has died over them."""
        if precautions.suspicion:
            self.suspect(precautions.suspicion)
        elif precautions.follows_death:
            self._records = 1

    def suspect(self, suspicion: Suspicion) -> None:
        """Suspect these records from the next chunk on."""
        self._suspicion, self._records = suspicion, min(self._most, suspicion.records)

    def states(self, working: Sequence[RangeState]) -> Sequence[RangeState]:
        """Return the suspected range until its suspected records are handled, and none otherwise."""
        suspected = self._suspicion
        if suspected is None:
            return ()
        states = [
            state for state in working if state.partition == suspected.partition and state.handled < suspected.after
        ]
        if not states:
            self._suspicion = None
        return states

    def records(self, states: Sequence[RangeState]) -> int:
        """Return the size of the next chunk, which ends before the first suspected record."""
        suspected = self._suspicion
        if suspected is None or suspected.first is None or states[0].handled >= suspected.first:
            return self._records
        return min(self._most, suspected.first - states[0].handled)

    def relax(self) -> None:
        """Let the chunks grow after one has passed."""
        if self._suspicion is None:
            self._records = min(self._most, self._records * GROWTH)
            self.is_alone = self.is_alone and self._records < self._most

    @property
    def is_at_ease(self) -> bool:
        """Tell whether the worker is past the records that earlier ones died over; right after a death, it is not."""
        return self._suspicion is None and self._records == self._most and not self.is_alone
