"""Processes several records of one partition at once, and writes their outputs in the order of the source."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.errors import KnownFaults
from kpipe_engine.faults.fault_handler import FaultHandler
from kpipe_engine.processing.retries import Retries
from kpipe_engine.processing.runners import Outcome, SegmentRunner
from kpipe_engine.writing.destination import Destination
from kpipe_engine.writing.outputs import write_outputs


class ConcurrentProcessor:
    """Processes records in any order, but writes only those in front of the first one that is not terminal.

    Otherwise a partition that stops at a fault would have written later records in the same transaction.
    """

    def __init__(self, runner: SegmentRunner, destination: Destination, faults: FaultHandler, retries: Retries) -> None:
        self._runner = runner
        self._destination = destination
        self._faults = faults
        self._retries = retries
        # By offset, the outcomes of records whose next try is not due, and of the records behind them.
        self._ahead: dict[int, Outcome] = {}

    def open(self) -> None:
        self._runner.open()

    def process(
        self, messages: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float
    ) -> int:
        if not messages:
            return 0
        self._runner.count_into(counts.named)
        self._work(messages, known_faults, until)
        for handled, message in enumerate(messages):
            outcome = self._ahead.get(message.offset())
            if outcome is not None and not outcome.is_due:
                return handled
            self._ahead.pop(message.offset(), None)
            if outcome is not None and outcome.stop is not None:
                raise outcome.stop
            fault = known_faults.get(message.offset()) or self._finish(message, outcome, counts)
            if fault is not None:
                self._faults.take(message, fault, counts)
            if outcome is not None:
                _add(outcome.counts, counts)
            counts.read += 1
        return len(messages)

    @property
    def waits(self) -> float:
        return self._retries.waits

    def close(self) -> None:
        self._runner.close()

    def _work(self, messages: Sequence[SourceMessage], known_faults: KnownFaults, until: float) -> None:
        offsets = {message.offset() for message in messages}
        # After a chunk that failed, reading resumes further back.
        before = {at: outcome for at, outcome in self._ahead.items() if at in offsets}
        # Each record waits until it is due itself, even if another one is due before.
        self._ahead = {at: each for at, each in before.items() if each.is_due or not self._retries.is_due(at)}
        new = [each for each in messages if each.offset() not in self._ahead and each.offset() not in known_faults]
        for message, outcome in zip(new, self._runner.work(new, until), strict=True):
            at = message.offset()
            if at in before:
                outcome.counts += before[at].counts
            self._ahead[at] = outcome

    def _finish(self, message: SourceMessage, outcome: Outcome | None, counts: Counts) -> Fault | None:
        if outcome is None:
            return None
        self._retries.forget(message.offset())
        return outcome.fault or write_outputs(self._destination, message, outcome.records, counts)


def _add(own: Counts, counts: Counts) -> None:
    counts.retried += own.retried
    for name, number in own.named.items():
        counts.named[name] = counts.named.get(name, 0) + number
