"""Processor of records with batch segments, many at a time; it writes and counts the records one by one."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import chain
from operator import itemgetter

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import Origin, SourceMessage
from kpipe_engine.batches.stages import StageChain
from kpipe_engine.errors import KnownFaults, PartitionHaltedError, RetryLaterError, SegmentError
from kpipe_engine.faults.fault_handler import FaultHandler
from kpipe_engine.processing.retries import Retries
from kpipe_engine.writing.destination import Destination
from kpipe_engine.writing.output_rows import Row, record_of_row
from kpipe_engine.writing.outputs import write_outputs

_message_of: Callable[[Row], SourceMessage] = itemgetter(0)


class BatchProcessor:
    """Processor that takes all records of a read through the segments together."""

    def __init__(
        self, segments: StageChain, destination: Destination, faults: FaultHandler, retries: Retries, origin: Origin
    ) -> None:
        self._segments = segments
        self._destination = destination
        self._faults = faults
        self._retries = retries
        self._origin = origin
        # By offset, the rows of records that passed behind one whose next try is not due: they need no further call.
        self._ahead: dict[int, list[Row]] = {}

    def open(self) -> None:
        self._segments.open()

    def process(
        self, messages: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float
    ) -> int:
        """Handle all messages, whatever the clock says, or those before a record whose next try is not due yet."""
        if not messages:
            return 0
        self._segments.count_into(counts.named)
        named = dict(counts.named)
        try:
            handled = self._handle(messages, counts, known_faults, until)
        except PartitionHaltedError as stop:
            self._recount(_before(messages, stop.next_offset), known_faults, counts, named)
            raise
        if handled < len(messages):
            self._recount(messages[:handled], known_faults, counts, named)
        return handled

    @property
    def waits(self) -> float:
        return self._retries.waits

    def close(self) -> None:
        self._segments.close()

    def _handle(
        self, messages: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float
    ) -> int:
        passed, self._ahead = self._ahead, {}
        rows, failed = self._segments.process(_without(known_faults.keys() | passed.keys(), messages))
        if failed or known_faults or passed or self._retries.tried:
            rows = [*rows, *chain.from_iterable(passed.values())]
            return self._one_by_one(messages, rows, {**failed, **known_faults}, counts, until)
        taken = self._destination.write_while_taken(rows)
        begun = _first_of_its_record(rows, taken)
        handled = len(messages) if begun == len(rows) else _position(messages, rows[begun])
        counts.read += handled
        counts.written += begun
        counts.filtered += handled - _records_of(rows if begun == len(rows) else rows[:begun], messages)
        return handled + self._one_by_one(messages[handled:], rows[begun:], {}, counts, until, taken - begun)

    def _one_by_one(
        self,
        messages: Sequence[SourceMessage],
        rows: Sequence[Row],
        stuck: Mapping[int, Fault | SegmentError],
        counts: Counts,
        until: float,
        taken: int = 0,
    ) -> int:
        """Write or fault each record; `taken` outputs of the first one are already on their way."""
        outputs: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            outputs[row[0].offset()].append(row)
        for handled, message in enumerate(messages):
            fault, own = stuck.get(message.offset()), outputs[message.offset()]
            if isinstance(fault, SegmentError):
                try:
                    fault, own = self._try_again(message, fault, counts, until)
                except RetryLaterError:
                    behind = [each.offset() for each in messages[handled + 1 :]]
                    self._ahead = {at: outputs[at] for at in behind if at not in stuck}
                    return handled
            self._retries.forget(message.offset())
            fault = fault or self._write(message, own, counts, 0 if handled else taken)
            if fault is not None:
                self._faults.take(message, fault, counts)
            counts.read += 1
        return len(messages)

    def _try_again(
        self, message: SourceMessage, error: SegmentError | None, counts: Counts, until: float
    ) -> tuple[Fault | None, list[Row]]:
        """Process a record by itself, as it was read, until it passes or is out of tries."""
        rows: list[Row] = []
        while error is not None:
            fault = self._retries.fault_or_wait(message.offset(), error, counts, until)
            if fault is not None:
                return fault, []
            rows, failed = self._segments.process([message])
            error = failed.get(message.offset())
        return None, rows

    def _recount(
        self,
        messages: Sequence[SourceMessage],
        known_faults: KnownFaults,
        counts: Counts,
        named: Mapping[str, int],
    ) -> None:
        """Set the named counters to the segments' counts for these messages, which are all that are terminal.

        Segments have counted for all messages that were read. A call counts for many records at a time, so only another
        call finds the counts of some of them. The records behind are processed again when their turn comes.
        """
        if counts.named == named:
            return
        self._ahead = {}
        counts.named.clear()
        counts.named.update(named)
        self._segments.process(_without(known_faults.keys(), messages))

    def _write(self, message: SourceMessage, rows: Sequence[Row], counts: Counts, taken: int) -> Fault | None:
        records = (record_of_row(row, self._origin) for row in rows[taken:])
        return write_outputs(self._destination, message, records, counts, taken)


def _without(offsets: Set[int], messages: Sequence[SourceMessage]) -> Sequence[SourceMessage]:
    return [each for each in messages if each.offset() not in offsets] if offsets else messages


def _before(messages: Sequence[SourceMessage], next_offset: int | None) -> Sequence[SourceMessage]:
    """Return the messages that are terminal when the partition stops."""
    return [] if next_offset is None else [each for each in messages if each.offset() < next_offset]


def _records_of(rows: Sequence[Row], messages: Sequence[SourceMessage]) -> int:
    """Count the records that the rows came from; the usual case, one row of each record, is checked first."""
    found = list(map(_message_of, rows))
    return len(found) if found == messages else len({*map(id, found)})


def _first_of_its_record(rows: Sequence[Row], at: int) -> int:
    """Return the position of the first row of the record that the row at `at` belongs to."""
    while 0 < at < len(rows) and rows[at - 1][0] is rows[at][0]:
        at -= 1
    return at


def _position(messages: Sequence[SourceMessage], row: Row) -> int:
    return bisect_left(messages, row[0].offset(), key=lambda message: message.offset())
