from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination
from airflow_provider_kpipe.contract.pipeline.policies import RetryPolicy
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import Origin, SourceMessage
from airflow_provider_kpipe.segments import SegmentContext
from kpipe_engine.assignment.run_monitor import NoMonitor
from kpipe_engine.batches.processor import BatchProcessor
from kpipe_engine.batches.stages import StageChain
from kpipe_engine.errors import ChunkFailedError, PartitionHaltedError, SegmentError
from kpipe_engine.faults.fault_handler import FaultHandler
from kpipe_engine.processing.retries import Retries
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing.destination import Destination
from kpipe_engine.writing.output_rows import Row, row_of_message

TOO_LARGE = KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
KNOWN = Fault.of(ValueError("refused before"), "kafka", "destination")


class FakeLetters:
    """Takes dead letters, and stops in front of those at the offsets of `stops`."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, Fault]] = []
        self.stops: set[int] = set()

    def take(self, message: Any, fault: Fault) -> None:
        if message.offset() in self.stops:
            raise PartitionHaltedError("no dead letters", message.offset())
        self.taken.append((message.offset(), fault))


class FakeChain:
    """Does what the values say; what fails does so a number of times."""

    def __init__(self) -> None:
        self.calls: list[list[bytes]] = []
        self.fails: dict[bytes, int] = {}
        self.counters: dict[str, int] = {}
        self.state: list[str] = []

    def open(self) -> None:
        self.state.append("open")

    def close(self) -> None:
        self.state.append("close")

    def count_into(self, counters: dict[str, int]) -> None:
        self.counters = counters

    def process(self, messages: Sequence[Any]) -> tuple[list[Row], dict[int, SegmentError]]:
        self.calls.append([message.value() for message in messages])
        rows: list[Row] = []
        failed: dict[int, SegmentError] = {}
        for message in messages:
            value = message.value()
            if self.fails.get(value):
                self.fails[value] -= 1
                failed[message.offset()] = SegmentError("orders:parse")
                failed[message.offset()].__cause__ = KeyError("amount")
            else:
                rows += [
                    (message, None, part, *row_of_message(message)[3:])
                    for part in ([] if value == b"drop" else value.split())
                ]
        return rows, failed


@pytest.fixture
def letters() -> FakeLetters:
    return FakeLetters()


@pytest.fixture
def chain() -> FakeChain:
    return FakeChain()


@pytest.fixture
def make(session: Any, letters: Any, chain: Any) -> Callable[..., BatchProcessor]:
    def made(retry: RetryPolicy | None = None, **declared: Any) -> BatchProcessor:
        faults = FaultHandler(lambda fault, message: "dead_letter", letters, NoMonitor())
        destination = Destination(KafkaDestination("out", **declared), session)
        return BatchProcessor(chain, destination, faults, Retries(retry or RetryPolicy(), StopSignal()), Origin("run"))

    return made


@pytest.fixture
def processor(make: Callable[..., BatchProcessor]) -> BatchProcessor:
    return make()


@pytest.fixture
def batch(message: Callable[..., SourceMessage]) -> Callable[..., list[SourceMessage]]:
    """Messages of these values, from offset 0 on."""
    return lambda *values: [message(offset, value, headers=[("a", b"1")]) for offset, value in enumerate(values)]


MakeBatch = Callable[..., list[SourceMessage]]


def written(producer: Any) -> list[bytes]:
    return [taken["value"] for taken in producer.taken]


def test_records_are_written_in_order_and_counted(processor: BatchProcessor, producer: Any, batch: MakeBatch) -> None:
    counts = Counts(read=10, written=9, filtered=1)
    assert processor.process(batch(b"a", b"drop", b"b c", b"d", b"drop"), counts, {}, math.inf) == 5
    assert written(producer) == [b"a", b"b", b"c", b"d"]
    assert counts == Counts(read=15, written=13, filtered=3)
    assert all(type(count) is int for count in (counts.filtered, counts.written))


def test_nothing_read_is_nothing_handled_and_opens_nothing(processor: BatchProcessor, chain: FakeChain) -> None:
    counts = Counts()
    assert processor.process([], counts, {}, math.inf) == 0
    assert (counts, chain.state) == (Counts(), [])


def test_all_is_handled_whatever_the_clock_says(processor: BatchProcessor, batch: MakeBatch) -> None:
    assert processor.process(batch(b"a", b"b"), Counts(), {}, -math.inf) == 2


def test_segments_count_where_the_records_are_counted(
    processor: BatchProcessor, chain: FakeChain, batch: MakeBatch
) -> None:
    counts = Counts()
    processor.process(batch(b"a"), counts, {}, math.inf)
    assert chain.counters is counts.named


def test_the_chain_is_opened_before_the_first_record_and_closed_with_the_handler(
    processor: BatchProcessor, chain: FakeChain, batch: MakeBatch
) -> None:
    processor.open()
    processor.process(batch(b"a"), Counts(), {}, math.inf)
    assert processor.waits == 0
    processor.close()
    assert chain.state == ["open", "close"]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(("keep", "partition", "timestamp"), [(True, 3, 1_700_000_000_000), (False, -1, 0)])
def test_a_row_is_written_as_a_record_is(
    make: Any, session: Any, producer: Any, batch: MakeBatch, traced: bool, keep: bool, partition: int, timestamp: int
) -> None:
    if traced:
        session.renew(isolates=True)
    make(keep_partition=keep, keep_timestamp=keep).process(batch(b"a"), Counts(), {}, math.inf)
    (taken,) = producer.taken
    assert (taken["record"] is not None) is traced
    del taken["record"]
    assert taken == {
        "topic": "out",
        "key": None,
        "value": b"a",
        "partition": partition,
        "timestamp": timestamp,
        "headers": [("a", b"1")],
    }


@pytest.mark.parametrize("traced", [False, True])
def test_header_rules_and_a_chosen_topic_and_partition_are_heeded(
    make: Any, session: Any, producer: Any, chain: Any, message: Any, traced: bool
) -> None:
    if traced:
        session.renew(isolates=True)
    source = message(0, b"a")
    chain.process = lambda _: ([(source, b"key", b"v", [("a", b"1"), ("b", b"2")], 7, "elsewhere", 0)], {})
    make(keep_partition=True, drop_headers=["a"]).process([source], Counts(), {}, math.inf)
    (taken,) = producer.taken
    assert (taken["topic"], taken["partition"], taken["headers"]) == ("elsewhere", 0, [("b", b"2")])


@pytest.mark.parametrize("headers", [[("\udcff", b"")], [7], [()]], ids=["no text", "no header", "no name"])
def test_headers_that_cannot_be_written_make_a_dead_letter(
    processor: BatchProcessor, letters: FakeLetters, chain: Any, producer: Any, message: Any, headers: Any
) -> None:
    source, counts = message(0, b"a"), Counts()
    chain.process = lambda _: ([(source, b"key", b"v", headers, 7, None, None)], {})
    assert processor.process([source], counts, {}, math.inf) == 1
    assert ([offset for offset, _ in letters.taken], counts) == ([0], Counts(read=1, dead_lettered=1))
    assert producer.taken == []


def test_a_full_queue_is_waited_out(processor: BatchProcessor, producer: Any, batch: MakeBatch) -> None:
    producer.full = 3
    counts = Counts()
    assert processor.process(batch(b"a", b"drop", b"b"), counts, {}, math.inf) == 3
    assert written(producer) == [b"a", b"b"]
    assert counts == Counts(read=3, written=2, filtered=1)
    assert producer.polled


def test_a_record_that_cannot_be_written_is_a_dead_letter_and_the_others_go_on(
    processor: BatchProcessor, producer: Any, letters: FakeLetters, batch: MakeBatch
) -> None:
    producer.refusals = {b"huge": TOO_LARGE}
    counts = Counts()
    assert processor.process(batch(b"a", b"drop", b"huge", b"b", b"drop"), counts, {}, math.inf) == 5
    assert written(producer) == [b"a", b"b"]
    ((offset, fault),) = letters.taken
    assert (offset, fault.kind, fault.component) == (2, "destination", "kafka")
    assert counts == Counts(read=5, written=2, filtered=2, dead_lettered=1)


@pytest.mark.parametrize("traced", [False, True])
def test_a_record_whose_second_output_cannot_be_written_fails_the_chunk_and_is_known_then(
    processor: BatchProcessor, session: Any, producer: Any, letters: FakeLetters, batch: MakeBatch, traced: bool
) -> None:
    if traced:
        session.renew(isolates=True)
    producer.refusals = {b"huge": TOO_LARGE}
    values, counts = [b"a b", b"x huge", b"c"], Counts()
    with pytest.raises(ChunkFailedError) as failure:
        processor.process(batch(*values), counts, {}, math.inf)
    assert counts == Counts(read=1, written=2)
    assert [(offset, fault.kind) for offset, fault in failure.value.faults.items()] == [(1, "destination")]
    producer.taken.clear()
    counts = Counts()
    assert processor.process(batch(*values), counts, failure.value.faults, math.inf) == 3
    assert written(producer) == [b"a", b"b", b"c"]
    assert [offset for offset, _ in letters.taken] == [1]
    assert counts == Counts(read=3, written=3, dead_lettered=1)


def test_a_queue_that_is_full_inside_of_a_record_is_gone_on_with_at_its_next_output(
    processor: BatchProcessor, session: Any, producer: Any, batch: MakeBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce = producer.produce

    def full_at_two(*message: Any, **named: Any) -> None:
        if len(producer.taken) == 2 and not producer.polled:
            producer.full = 2
        produce(*message, **named)

    monkeypatch.setattr(producer, "produce", full_at_two)
    counts = Counts()
    assert processor.process(batch(b"a", b"b c d", b"drop", b"e"), counts, {}, math.inf) == 4
    assert written(producer) == [b"a", b"b", b"c", b"d", b"e"]
    assert counts == Counts(read=4, written=5, filtered=1)


def test_a_record_that_is_known_not_to_pass_is_given_to_no_segment(
    processor: BatchProcessor, producer: Any, letters: FakeLetters, chain: FakeChain, batch: MakeBatch
) -> None:
    counts = Counts()
    assert processor.process(batch(b"a", b"b", b"c"), counts, {1: KNOWN}, math.inf) == 3
    assert (letters.taken, written(producer), chain.calls) == ([(1, KNOWN)], [b"a", b"c"], [[b"a", b"c"]])
    assert counts == Counts(read=3, written=2, dead_lettered=1)


def test_a_record_that_fails_is_a_dead_letter_with_its_segment_and_cause(
    processor: BatchProcessor, producer: Any, letters: FakeLetters, chain: FakeChain, batch: MakeBatch
) -> None:
    chain.fails = {b"bad": 1}
    counts = Counts()
    assert processor.process(batch(b"a", b"bad", b"b"), counts, {}, math.inf) == 3
    ((offset, fault),) = letters.taken
    assert (offset, fault.kind, fault.component, fault.exception_class) == (1, "segment", "orders:parse", "KeyError")
    assert written(producer) == [b"a", b"b"]
    assert counts == Counts(read=3, written=2, dead_lettered=1)


def test_only_records_before_a_stop_are_written_and_counted(
    processor: BatchProcessor, producer: Any, letters: FakeLetters, chain: FakeChain, batch: MakeBatch
) -> None:
    chain.fails, letters.stops = {b"bad": 1}, {2}
    counts = Counts()
    with pytest.raises(PartitionHaltedError) as stop:
        processor.process(batch(b"a", b"drop", b"bad", b"b"), counts, {}, math.inf)
    assert stop.value.next_offset == 2
    assert written(producer) == [b"a"]
    assert counts == Counts(read=2, written=1, filtered=1)


def test_a_record_is_tried_again_by_itself(
    make: Any, producer: Any, letters: FakeLetters, chain: FakeChain, batch: MakeBatch
) -> None:
    chain.fails = {b"shy": 2, b"bad": 9}
    counts = Counts()
    assert make(RetryPolicy.fixed(3, 0)).process(batch(b"a", b"shy", b"bad", b"b"), counts, {}, math.inf) == 4
    assert chain.calls == [[b"a", b"shy", b"bad", b"b"], [b"shy"], [b"shy"], [b"bad"], [b"bad"]]
    assert written(producer) == [b"a", b"shy", b"b"]
    ((offset, fault),) = letters.taken
    assert (offset, fault.attempts) == (2, 3)
    assert counts == Counts(read=4, written=3, dead_lettered=1, retried=4)


def test_a_record_that_is_not_due_yet_ends_the_chunk_in_front_of_it(
    make: Any, producer: Any, chain: FakeChain, batch: MakeBatch
) -> None:
    chain.fails = {b"shy": 1}
    processor, counts, messages = make(RetryPolicy.fixed(2, 60)), Counts(), batch(b"a", b"shy", b"b")
    assert processor.process(messages, counts, {}, -math.inf) == 1
    assert (written(producer), counts) == ([b"a"], Counts(read=1, written=1, retried=1))
    assert 59 < processor.waits <= 60
    assert processor.process(messages[1:], counts, {}, -math.inf) == 2
    assert written(producer) == [b"a", b"shy", b"b"]
    assert counts == Counts(read=3, written=3, retried=1)
    # What passed behind it was not called for again.
    assert chain.calls == [[b"a", b"shy", b"b"], [b"shy"]]


def test_new_records_are_called_for_without_those_that_have_passed(
    make: Any, producer: Any, letters: FakeLetters, chain: FakeChain, batch: MakeBatch
) -> None:
    chain.fails = {b"shy": 1}
    processor, counts, messages = make(RetryPolicy.fixed(2, 60)), Counts(), batch(b"shy", b"a b", b"drop", b"c", b"d")
    assert processor.process(messages[:4], counts, {}, -math.inf) == 0
    assert processor.process(messages, counts, {3: KNOWN}, -math.inf) == 5
    assert chain.calls == [[b"shy", b"a b", b"drop", b"c"], [b"shy", b"d"]]
    assert written(producer) == [b"shy", b"a", b"b", b"d"]
    assert [offset for offset, _ in letters.taken] == [3]
    assert counts == Counts(read=5, written=4, filtered=1, dead_lettered=1, retried=1)


def test_a_real_chain_goes_through(session: Any, producer: Any, letters: Any, message: Any) -> None:
    context = SegmentContext("run", "orders", 3, logging.getLogger("kpipe.segments"))
    paths = ["orders_kit:twice", "batch_kit:parse", "batch_kit:only_even"]
    faults = FaultHandler(lambda fault, message: "dead_letter", letters, NoMonitor())
    destination = Destination(KafkaDestination("out"), session)
    chain = StageChain(paths, context, Origin("run"))
    processor = BatchProcessor(chain, destination, faults, Retries(RetryPolicy(), StopSignal()), Origin("run"))
    counts = Counts()
    processor.open()
    processor.process(
        [message(at, value) for at, value in enumerate((b'{"id": 2}', b"{", b'{"id": 3}'))], counts, {}, 0
    )
    assert [(each["key"], each["value"]) for each in producer.taken] == [
        (b"first", b'{"id": 2, "seen": true}'),
        (b"second", b'{"id": 2, "seen": true}'),
    ]
    assert counts == Counts(read=3, written=2, filtered=1, dead_lettered=1)
