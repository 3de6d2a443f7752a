"""Tries a record again, between chunks where the wait is long."""

from __future__ import annotations

import random
import time
from types import TracebackType

from airflow_provider_kpipe.contract.faults.fault import FailedTry, Fault, FaultKind
from airflow_provider_kpipe.contract.pipeline.policies import RetryPolicy
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.segments import StopPartitionError
from kpipe_engine.errors import PartitionHaltedError, RetryLaterError, SegmentError, SegmentTimeoutError
from kpipe_engine.stop_signal import StopSignal

# Many tries have to fit into one header.
TRY_CHARACTERS = 200


class Retries:
    """Remembers what records have been through, until they pass or fault.

    A wait that fits into the chunk is slept through. A longer one ends the chunk in front of the record, so that
    what is done gets stored, and is slept through before the next chunk begins: no transaction is open then that
    could outlive its timeout.
    """

    def __init__(self, policy: RetryPolicy, stop_signal: StopSignal) -> None:
        self._policy = policy
        self._stop_signal = stop_signal
        self.tried: dict[int, tuple[FailedTry, ...]] = {}
        self._due: dict[int, float] = {}

    def fault_or_wait(self, source_offset: int, error: SegmentError, counts: Counts, until: float) -> Fault | None:
        """The fault of a record that has had its tries; None, after the wait, if it has another."""
        found = self.fault_or_delay(source_offset, error, counts, until)
        if isinstance(found, Fault):
            return found
        self._stop_signal.wait(found)
        if self._stop_signal.reason:
            # There is no other try where the partition is to be given up.
            raise RetryLaterError
        return None

    def fault_or_delay(self, source_offset: int, error: SegmentError, counts: Counts, until: float) -> Fault | float:
        """The fault of a record that has had its tries, or how long to wait before the next one.

        Where no record is at fault, the partition stops instead.
        """
        cause = error.__cause__ or error
        # Past what the class itself makes of an assignment: there are frozen ones.
        BaseException.with_traceback(cause, _from_users_code_on(cause.__traceback__))
        kind: FaultKind = "timeout" if isinstance(cause, SegmentTimeoutError) else "segment"
        fault = Fault.of(cause, error.segment, kind, self.tried.pop(source_offset, ()))
        if self._due:
            self._due.pop(source_offset, None)
        if fault.attempts >= self._policy.max_attempts or not self._policy.covers(cause):
            if isinstance(cause, StopPartitionError):
                raise PartitionHaltedError(f"offset {source_offset}: {fault}", source_offset)
            return fault
        delay = self._policy.delay_after(fault.attempts, random.random())  # no secret depends on it
        failed = FailedTry(fault.attempts, fault.exception_class, fault.message[:TRY_CHARACTERS], round(delay, 3))
        self.tried[source_offset] = (*fault.retries, failed)
        counts.retried += 1
        due = time.monotonic() + delay
        if due > until:
            self._due[source_offset] = due
            raise RetryLaterError
        return delay

    def is_due(self, source_offset: int) -> bool:
        """Whether a record may be tried, and is then: it waits no more."""
        if self._due.get(source_offset, 0.0) > time.monotonic():
            return False
        self._due.pop(source_offset, None)
        return True

    def forget(self, source_offset: int) -> None:
        """A record that has passed, or has become a fault."""
        self.tried.pop(source_offset, None)
        self._due.pop(source_offset, None)

    @property
    def waits(self) -> float:
        """For how many seconds no record is due."""
        return max(0.0, min(self._due.values()) - time.monotonic()) if self._due else 0.0


def _from_users_code_on(trace: TracebackType | None) -> TracebackType | None:
    """How the engine came to call a segment says nothing about a fault."""
    step = trace
    while step is not None and step.tb_frame.f_globals.get("__name__", "").startswith("kpipe_engine."):
        step = step.tb_next
    return step or trace
