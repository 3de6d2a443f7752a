"""Further tries of a record: in the same chunk after a short wait, in a later one after a long wait."""

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
    """Failed tries of each record, until it passes or faults.

    A wait that fits into the chunk is slept through. A longer one ends the chunk in front of the record, so that the
    records before it are stored. The worker sleeps before the next chunk begins: no transaction is open then that
    could outlive its timeout.
    """

    def __init__(self, policy: RetryPolicy, stop_signal: StopSignal) -> None:
        self._policy = policy
        self._stop_signal = stop_signal
        self.tried: dict[int, tuple[FailedTry, ...]] = {}
        self._due: dict[int, float] = {}

    def fault_or_wait(self, source_offset: int, error: SegmentError, counts: Counts, until: float) -> Fault | None:
        """Return the fault of a record that is out of tries; if it has another try, wait and return None."""
        found = self.fault_or_delay(source_offset, error, counts, until)
        if isinstance(found, Fault):
            return found
        self._stop_signal.wait(found)
        if self._stop_signal.reason:
            # A partition that is to be given up makes no further try.
            raise RetryLaterError
        return None

    def fault_or_delay(self, source_offset: int, error: SegmentError, counts: Counts, until: float) -> Fault | float:
        """Return the fault of a record that is out of tries, or the seconds to wait before its next try.

        Stop the partition instead if no record is at fault.
        """
        cause = error.__cause__ or error
        # Bypasses the error's own class: a frozen one forbids the assignment.
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
        """Tell whether a record may be tried now, and if so, end its wait."""
        if self._due.get(source_offset, 0.0) > time.monotonic():
            return False
        self._due.pop(source_offset, None)
        return True

    def forget(self, source_offset: int) -> None:
        """Drop the tries of a record that has passed or faulted."""
        self.tried.pop(source_offset, None)
        self._due.pop(source_offset, None)

    @property
    def waits(self) -> float:
        """Seconds until the first waiting record is due; 0 if none waits."""
        return max(0.0, min(self._due.values()) - time.monotonic()) if self._due else 0.0


def _from_users_code_on(trace: TracebackType | None) -> TracebackType | None:
    """Return the trace without the engine's frames above the user's code, which say nothing about a fault."""
    step = trace
    while step is not None and step.tb_frame.f_globals.get("__name__", "").startswith("kpipe_engine."):
        step = step.tb_next
    return step or trace
