"""How a worker goes on after one that died: in small chunks first, which grow where all goes well."""

from __future__ import annotations

from collections.abc import Sequence

from kpipe_engine.assignment.care import Precautions, Suspicion
from kpipe_engine.assignment.range_state import RangeState

GROWTH = 8


class CarefulStart:
    """Says what the next chunk is made of. Where nobody is suspected, that is as much as the pipeline allows."""

    def __init__(self, care: Precautions, most: int) -> None:
        self._suspicion: Suspicion | None = None
        self._most = self._records = most
        self.is_alone = care.follows_death
        """Whether nothing may be fetched while records are handled: what dies then has died over them."""
        if care.suspicion:
            self.suspect(care.suspicion)
        elif care.follows_death:
            self._records = 1

    def suspect(self, suspicion: Suspicion) -> None:
        """From the next chunk on."""
        self._suspicion, self._records = suspicion, min(self._most, suspicion.records)

    def states(self, working: Sequence[RangeState]) -> Sequence[RangeState]:
        """Only the one that is suspected, until what is suspected of it is behind."""
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
        """A chunk ends in front of what is suspected."""
        suspected = self._suspicion
        if suspected is None or suspected.first is None or states[0].handled >= suspected.first:
            return self._records
        return min(self._most, suspected.first - states[0].handled)

    def relax(self) -> None:
        """A chunk has passed."""
        if self._suspicion is None:
            self._records = min(self._most, self._records * GROWTH)
            self.is_alone = self.is_alone and self._records < self._most

    @property
    def is_at_ease(self) -> bool:
        """Whether a worker has got over what those before it died of; one that has just begun has not."""
        return self._suspicion is None and self._records == self._most and not self.is_alone
