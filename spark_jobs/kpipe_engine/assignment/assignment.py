"""The ranges of one writer on their way through a worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from kpipe_engine.assignment.events import Event, PartitionEvents
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.errors import KnownFaults, PartitionHaltedError, PipelineHaltedError


class Assignment(Sequence[RangeState]):
    """All ranges of a worker, of which it reads one at a time: the current one.

    `Claims` says which ranges are ours and where they begin, and `ChunkFiller` moves the current one on. Here they are
    stopped, yielded and noted as stored, and events tell of that.
    """

    def __init__(self, states: Iterable[RangeState], events: PartitionEvents, *, drains: bool = True) -> None:
        """Take ranges on, which wait to be claimed.

        :param drains: whether a yielded range keeps the records that are in flight
        """
        self._states, self._events, self._drains = tuple(states), events, drains
        self._current = self._states[0]

    def __getitem__(self, at: Any) -> Any:
        return self._states[at]

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[RangeState]:
        return iter(self._states)

    @property
    def current(self) -> RangeState:
        return self._current

    def turn_to(self, state: RangeState) -> None:
        """Make this range the current one."""
        self._current = state

    @property
    def progress(self) -> list[PartitionProgress]:
        return [state.progress for state in self]

    @property
    def working(self) -> list[RangeState]:
        return [state for state in self if state.is_working]

    @property
    def unclaimed(self) -> list[RangeState]:
        """Ranges beside whose offsets our lease is not stored yet."""
        return [state for state in self if state.is_ours and not state.is_claimed]

    @property
    def unsettled(self) -> list[RangeState]:
        return [state for state in self if not state.is_settled]

    @property
    def not_revoked(self) -> list[RangeState]:
        return [state for state in self if not state.is_revoked]

    @property
    def ours(self) -> list[RangeState]:
        return [state for state in self if state.is_ours]

    @property
    def needing_store(self) -> list[RangeState]:
        return [state for state in self if state.needs_store]

    def claim(self) -> None:
        """Note that our lease is stored beside the offsets of all ranges that are ours."""
        for state in self.ours:
            state.claim()
            self._events.emit("assigned" if state.is_working else "completed", state)

    def learn(self, culprits: Mapping[int, KnownFaults]) -> None:
        """Note the records of each partition that made earlier workers die, as far as they lie ahead."""
        for state in self.ours:
            state.learn(culprits.get(state.partition, {}))
            state.forget_faults()

    def learn_of_current(self, faults: KnownFaults) -> bool:
        """Note the records of the current range that made a chunk fail, and tell whether any of them is new."""
        return self.current.learn(faults)

    def forget_faults_of_current(self) -> None:
        """Forget the faults of records that are behind, in the current range."""
        self.current.forget_faults()

    @property
    def has_suspects(self) -> bool:
        """Tell whether suspected records lie ahead in any of the ranges."""
        return any(state.is_suspect for state in self)

    def suspect(self) -> None:
        """Suspect all that a failed chunk had of the ranges."""
        for state in self:
            state.suspect()

    def start(self, state: RangeState, next_offset: int) -> None:
        """Note that the reader has turned to this range, at this offset."""
        state.advance(next_offset)
        self._events.emit("started", state)

    def emit_lost(self, states: Sequence[RangeState]) -> None:
        """Emit which of the ranges are not ours any more, now that their stored progress has been read again."""
        for state in states:
            if not state.is_ours:
                self._events.emit("revoked" if state.is_revoked else "faulted", state, reason=state.reason)

    def emit(self, event: Event) -> None:
        """Emit an event of the current range."""
        self._events.emit(event, self.current)

    def stop(self, stop: PartitionHaltedError) -> None:
        """Stop the current range, and the others with it if the whole pipeline has to stop."""
        self.current.stop(stop)
        if isinstance(stop, PipelineHaltedError):
            for other in self.working:
                other.stop_short(f"partition {self.current.partition} stopped the pipeline: {stop}")

    def stop_all(self, stop: PartitionHaltedError) -> None:
        """Stop each working range at its position."""
        for state in self.working:
            state.stop(stop)

    def stop_some(self, reasons: Mapping[int, str]) -> None:
        """Stop the working ranges of these partitions."""
        for state in self.working:
            if reason := reasons.get(state.partition):
                state.stop_short(reason)
                self._events.emit("faulted", state, reason=reason)

    def stop_unsettled(self, reason: str) -> list[RangeState]:
        """Stop and return the ranges that are not settled: nothing more of theirs can be stored by this worker."""
        states = self.unsettled
        for state in states:
            state.stop_short(reason)
            self._events.emit("faulted", state, reason=state.reason)
        return states

    def yield_all(self, reason: str) -> None:
        """Give up each working range that has not reached its end."""
        for state in self.working:
            if state.handled < state.range.end:
                if self._drains:
                    self._events.emit("draining", state, reason=reason)
                state.give_up(reason)

    def mark_stored(self, states: Sequence[RangeState]) -> None:
        """Note that the handled parts of these ranges are stored, and their ends."""
        for state in states:
            state.mark_stored()
            self._events.emit_stored(state, self._drains)

    def close(self) -> None:
        self._events.close()
