from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.pipeline.policies import RetryPolicy
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import Origin, Record, SourceMessage
from kpipe_engine.assignment.run_monitor import NoMonitor
from kpipe_engine.errors import ChunkFailedError, PartitionHaltedError, SegmentError, UnwritableRecordError
from kpipe_engine.faults.fault_handler import FaultHandler
from kpipe_engine.processing import copying
from kpipe_engine.processing import sequential as processors
from kpipe_engine.processing.copying import CopyProcessor
from kpipe_engine.processing.processor import RecordProcessor
from kpipe_engine.processing.retries import Retries
from kpipe_engine.processing.sequential import SequentialProcessor
from kpipe_engine.stop_signal import StopSignal

MakeMessage = Callable[..., SourceMessage]


class FakeDestination:
    """Takes all but values that begin with b"huge"."""

    def __init__(self) -> None:
        self.written: list[Any] = []

    def copy_while_taken(self, messages: Sequence[SourceMessage]) -> int:
        taken = list(itertools.takewhile(lambda message: not (message.value() or b"").startswith(b"huge"), messages))
        self.written += [message.value() for message in taken]
        return len(taken)

    def copy(self, message: SourceMessage) -> None:
        self._take(message.value())

    def write(self, record: Record, message: SourceMessage) -> None:
        self._take(record.value)

    def _take(self, value: Any) -> None:
        if (value or b"").startswith(b"huge"):
            raise UnwritableRecordError from ValueError("too large")
        self.written.append(value)


class FakeDeadLetters:
    """Takes dead letters, and stops in front of those at the offsets of `stops`."""

    def __init__(self) -> None:
        self.taken: list[tuple[int | None, Fault]] = []
        self.headers: list[Any] = []
        self.stops: set[int | None] = set()

    def take(self, message: SourceMessage, fault: Fault) -> None:
        if message.offset() in self.stops:
            raise PartitionHaltedError("no dead letters", message.offset())
        self.taken.append((message.offset(), fault))
        self.headers.append(message.headers())


class FakeSegments:
    """One segment that does what the value says."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def open(self) -> None:
        self.calls.append("open")

    def close(self) -> None:
        self.calls.append("close")

    def count_into(self, counters: dict[str, int]) -> None:
        self.counters = counters

    def process(self, record: Record) -> Sequence[Record]:
        if record.value == b"bad":
            record.headers.append(("half", b"done"))
            raise SegmentError("orders:parse") from KeyError("amount")
        if record.value == b"drop":
            return ()
        if record.value.startswith(b"split "):
            return [record.copy(value=part) for part in record.value.split()[1:]]
        return (record,)


def to_dead_letters(letters: Any) -> FaultHandler:
    return FaultHandler(lambda fault, message: "dead_letter", letters, NoMonitor())


@pytest.fixture
def destination() -> FakeDestination:
    return FakeDestination()


@pytest.fixture
def letters() -> FakeDeadLetters:
    return FakeDeadLetters()


@pytest.fixture
def segments() -> FakeSegments:
    return FakeSegments()


@pytest.fixture(params=["copy", "segments"])
def processor(request: pytest.FixtureRequest, destination: Any, letters: Any, segments: Any) -> RecordProcessor:
    if request.param == "copy":
        return CopyProcessor(destination, to_dead_letters(letters))
    return SequentialProcessor(
        segments,
        destination,
        to_dead_letters(letters),
        Retries(RetryPolicy(), StopSignal()),
        Origin("run"),
        StopSignal(),
    )


@pytest.fixture
def sequential(destination: Any, letters: Any, segments: Any) -> SequentialProcessor:
    return SequentialProcessor(
        segments,
        destination,
        to_dead_letters(letters),
        Retries(RetryPolicy(), StopSignal()),
        Origin("run"),
        StopSignal(),
    )


@pytest.fixture
def batch(message: MakeMessage) -> Callable[..., list[SourceMessage]]:
    """Messages of these values, from offset 0 on."""
    return lambda *values: [message(offset, value, headers=[("a", b"1")]) for offset, value in enumerate(values)]


MakeBatch = Callable[..., list[SourceMessage]]
KNOWN = Fault.of(ValueError("refused before"), "kafka", "destination")


def test_records_are_written_in_order_and_counted(
    processor: RecordProcessor, destination: Any, batch: MakeBatch
) -> None:
    counts = Counts(read=10, written=9, filtered=1)
    assert processor.process(batch(b"a", b"b", b"c"), counts, {}, math.inf) == 3
    assert destination.written == [b"a", b"b", b"c"]
    assert counts == Counts(read=13, written=12, filtered=1)


def test_nothing_read_is_nothing_handled(processor: RecordProcessor) -> None:
    counts = Counts()
    assert processor.process([], counts, {}, math.inf) == 0
    assert counts == Counts()


def test_a_record_that_cannot_be_written_is_a_dead_letter_and_the_others_go_on(
    processor: RecordProcessor, destination: Any, letters: Any, batch: MakeBatch
) -> None:
    counts = Counts()
    assert processor.process(batch(b"a", b"huge", b"b"), counts, {}, math.inf) == 3
    assert destination.written == [b"a", b"b"]
    ((offset, fault),) = letters.taken
    assert (offset, fault.kind, fault.component) == (1, "destination", "kafka")
    assert (fault.exception_class, fault.message) == ("ValueError", "too large")
    assert counts == Counts(read=3, written=2, dead_lettered=1)


@pytest.mark.parametrize("offset", [0, 2])
def test_a_record_that_is_known_not_to_pass_is_a_dead_letter_without_another_try(
    processor: RecordProcessor, destination: Any, letters: Any, batch: MakeBatch, offset: int
) -> None:
    counts = Counts()
    values = [b"a", b"b", b"c"]
    assert processor.process(batch(*values), counts, {offset: KNOWN}, math.inf) == 3
    assert letters.taken == [(offset, KNOWN)]
    assert destination.written == [value for each, value in enumerate(values) if each != offset]
    assert counts == Counts(read=3, written=2, dead_lettered=1)


def test_a_record_that_stops_the_partition_is_not_counted_for_it_is_read_again(
    processor: RecordProcessor, destination: Any, letters: Any, batch: MakeBatch
) -> None:
    counts = Counts()
    letters.stops = {1}
    with pytest.raises(PartitionHaltedError):
        processor.process(batch(b"a", b"huge", b"b"), counts, {}, math.inf)
    assert destination.written == [b"a"]
    assert counts == Counts(read=1, written=1)


def test_records_left_after_the_time_are_not_handled(
    processor: RecordProcessor, destination: Any, batch: MakeBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(1)
    for module in (copying, processors):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    counts = Counts()
    # What is known of a later record makes both handlers go record by record.
    handled = processor.process(batch(*[b"a"] * 10), counts, {99: KNOWN}, 4.5)
    assert handled == 4
    assert len(destination.written) == 4
    assert counts == Counts(read=4, written=4)


def test_a_segment_that_raises_makes_a_dead_letter(
    sequential: SequentialProcessor, destination: Any, letters: Any, batch: MakeBatch
) -> None:
    counts = Counts()
    assert sequential.process(batch(b"a", b"bad", b"b"), counts, {}, math.inf) == 3
    ((offset, fault),) = letters.taken
    assert (offset, fault.kind, fault.component) == (1, "segment", "orders:parse")
    assert fault.exception_class == "KeyError"
    assert counts == Counts(read=3, written=2, dead_lettered=1)


def test_a_dead_letter_has_the_headers_that_were_read_whatever_a_segment_did_to_them(
    sequential: SequentialProcessor, letters: Any, batch: MakeBatch
) -> None:
    sequential.process(batch(b"bad"), Counts(), {}, math.inf)
    assert letters.headers == [[("a", b"1")]]


def test_every_try_begins_with_the_record_as_it_was_read(
    segments: Any, destination: Any, letters: Any, message: MakeMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, ...]] = []

    def spoil_first(_segments: Any, record: Record) -> tuple[Record, ...]:
        seen.append((record.value, record.key, list(record.headers), record.timestamp))
        if len(seen) == 1:
            record.value, record.key, record.timestamp = b"spoiled", b"spoiled", 1
            record.headers.append(("spoiled", b"1"))
            raise SegmentError("orders:spoil_first") from TimeoutError("not yet")
        return (record,)

    monkeypatch.setattr(FakeSegments, "process", spoil_first)
    stop_signal = StopSignal()
    retries = Retries(RetryPolicy.fixed(2, 0.0), stop_signal)
    processor = SequentialProcessor(
        segments, destination, to_dead_letters(letters), retries, Origin("run"), stop_signal
    )
    counts = Counts()
    assert processor.process([message(5, b"tea", headers=[("a", b"1")])], counts, {}, math.inf) == 1
    assert seen[0] == seen[1]
    assert (destination.written, counts.retried) == ([b"tea"], 1)


def test_a_record_that_is_filtered_is_counted(
    sequential: SequentialProcessor, destination: Any, batch: MakeBatch
) -> None:
    counts = Counts()
    sequential.process(batch(b"a", b"drop", b"drop"), counts, {}, math.inf)
    assert destination.written == [b"a"]
    assert counts == Counts(read=3, written=1, filtered=2)
    assert all(type(count) is int for count in (counts.filtered, counts.written))


def test_every_output_of_a_record_is_written_and_counted(
    sequential: SequentialProcessor, destination: Any, batch: MakeBatch
) -> None:
    counts = Counts()
    sequential.process(batch(b"split x y z"), counts, {}, math.inf)
    assert destination.written == [b"x", b"y", b"z"]
    assert counts == Counts(read=1, written=3)


def test_a_record_whose_first_output_cannot_be_written_is_a_dead_letter(
    sequential: SequentialProcessor, destination: Any, letters: Any, batch: MakeBatch
) -> None:
    counts = Counts()
    sequential.process(batch(b"split huge y"), counts, {}, math.inf)
    assert destination.written == []
    assert [offset for offset, _ in letters.taken] == [0]
    assert counts == Counts(read=1, dead_lettered=1)


@pytest.mark.parametrize("offset", [0, 2])
def test_a_record_whose_second_output_cannot_be_written_fails_the_chunk_and_is_known_then(
    sequential: SequentialProcessor, destination: Any, letters: Any, batch: MakeBatch, offset: int
) -> None:
    values = [b"a", b"b", b"c"]
    values[offset] = b"split x huge"
    with pytest.raises(ChunkFailedError, match="ValueError: too large") as failure:
        sequential.process(batch(*values), Counts(), {}, math.inf)
    ((known, fault),) = failure.value.faults.items()
    assert (known, fault.kind) == (offset, "destination")
    destination.written.clear()
    counts = Counts()
    assert sequential.process(batch(*values), counts, failure.value.faults, math.inf) == 3
    assert letters.taken == [(offset, fault)]
    assert b"x" not in destination.written
    assert counts == Counts(read=3, written=2, dead_lettered=1)


def test_segments_are_opened_before_the_first_record_and_closed_with_the_handler(
    sequential: SequentialProcessor, segments: FakeSegments, batch: MakeBatch
) -> None:
    sequential.open()
    sequential.process(batch(b"a"), Counts(), {}, math.inf)
    sequential.close()
    assert segments.calls == ["open", "close"]
