from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.dead_letters.dead_letter import Coordinates, DeadLetter
from airflow_provider_kpipe.contract.dead_letters.dialects import DIALECTS
from airflow_provider_kpipe.contract.dead_letters.messages import write_envelope, write_raw
from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import (
    KafkaDeadLetter,
    KafkaDestination,
    KafkaPipeline,
    KafkaSource,
)
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.contract.redrive.decisions import Decisions
from airflow_provider_kpipe.contract.redrive.ledger import LedgerEntry, Place, Redriven, SourceRecord, ledger_key
from airflow_provider_kpipe.contract.redrive.redrive import Redrive, Selection
from kpipe_engine.errors import ChunkFailedError, KnownFaults, PartitionHaltedError, UnwritableRecordError
from kpipe_engine.redrive.processor import RedriveProcessor
from tests.kit.letters import LETTER
from tests.kit.plans import plan_of

RANGE = PartitionRange(0, 0, 90, 0)
PIPELINE = KafkaPipeline(
    "orders", KafkaSource("orders"), KafkaDestination("out"), dead_letter=KafkaDeadLetter("orders.dead")
)
REDRIVE = Redrive("output", Selection("orders"), 3, "orders.parked", "orders.dead.redriven", "orders")
EXHAUSTED = replace(LETTER, attempt=3)
OF_OTHERS = replace(LETTER, pipeline="returns")


class Inner:
    """The processor of the pipeline: takes records until it has had enough of them, or stops before one."""

    waits = 2.5

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.given: list[Any] = []
        self.counters: list[dict[str, int]] = []
        self.most = math.inf
        self.stops_at: int | None = None

    def open(self) -> None:
        self.calls.append("open")

    def close(self) -> None:
        self.calls.append("close")

    def process(self, messages: Sequence[Any], counts: Counts, known_faults: KnownFaults, until: float) -> int:
        self.counters.append(dict(counts.named))
        for message in messages:
            if len(self.given) >= self.most:
                break
            if message.offset() == self.stops_at:
                raise PartitionHaltedError("stop here", message.offset())
            self.given.append(message)
            counts.read += 1
            counts.written += 1
        return sum(message in self.given for message in messages)


class Ledger:
    """Keeps its entries, and cannot write those of some offsets."""

    def __init__(self) -> None:
        self.redriven = Redriven("abc", [RANGE])
        self.read = 0
        self.entries: list[tuple[int, str]] = []
        self.refused: set[int] = set()
        self.made = Decisions(REDRIVE, self.redriven)

    def decisions(self) -> Decisions:
        self.read += 1
        return self.made

    def enter(self, place: Place, outcome: str, record: SourceRecord) -> None:
        if place.offset in self.refused:
            raise UnwritableRecordError from ValueError("too large")
        self.entries.append((place.offset, outcome))


@pytest.fixture
def inner() -> Inner:
    return Inner()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def processor(inner: Any, ledger: Any, session: Any) -> RedriveProcessor:
    return RedriveProcessor(Job(PIPELINE, plan_of(RANGE, topic="orders.dead")), REDRIVE, inner, ledger, session)


@pytest.fixture
def batch(message: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Messages that hold these letters, from offset 0 on, each of another record; None is no letter."""

    def make(*letters: DeadLetter | None) -> list[Any]:
        made = []
        for offset, letter in enumerate(letters):
            if letter is None:
                made.append(message(offset, b"no letter", topic="orders.dead", partition=0))
                continue
            own = replace(letter, source=Coordinates("orders", 3, 100 + offset, 77, "create_time"))
            key, value, headers = write_raw(own, DIALECTS["kpipe"])
            made.append(message(offset, value, key=key, headers=headers, topic="orders.dead", partition=0))
        return made

    return make


MakeBatch = Callable[..., list[Any]]


def test_chosen_letters_are_given_as_the_records_inside_and_entered(
    processor: RedriveProcessor, inner: Inner, ledger: Ledger, batch: MakeBatch
) -> None:
    counts = Counts()
    assert processor.process(batch(LETTER, OF_OTHERS, None, LETTER), counts, {}, math.inf) == 4
    assert [(each.offset(), each.value()) for each in inner.given] == [(0, LETTER.value), (3, LETTER.value)]
    assert ledger.entries == [(0, "redriven"), (3, "redriven")]
    assert (counts.read, counts.written, counts.filtered) == (4, 2, 2)
    assert counts.named == {"kpipe:redriven": 2, "kpipe:not_selected": 1, "kpipe:unreadable": 1}


def test_a_letter_that_the_ledger_has_is_not_redriven_again(
    processor: RedriveProcessor, inner: Inner, ledger: Ledger, batch: MakeBatch
) -> None:
    entry = LedgerEntry("dag/before/redrive", "redriven", "2026-01-31T12:00:00+00:00")
    ledger.redriven.note(0, ledger_key("abc", 0), entry.to_text().encode())
    counts = Counts()
    assert processor.process(batch(LETTER), counts, {}, math.inf) == 1
    assert (inner.given, ledger.entries, counts.named) == ([], [], {"kpipe:already_redriven": 1})


def test_a_letter_of_which_there_were_enough_attempts_is_parked_in_its_turn(
    processor: RedriveProcessor, inner: Inner, ledger: Ledger, producer: Any, batch: MakeBatch
) -> None:
    messages, counts = batch(LETTER, EXHAUSTED, LETTER), Counts()
    assert processor.process(messages, counts, {}, math.inf) == 3
    assert ledger.entries == [(0, "redriven"), (1, "parked"), (2, "redriven")]
    (parked,) = producer.taken
    assert (parked["topic"], parked["value"], parked["timestamp"]) == (
        "orders.parked",
        messages[1].value(),
        messages[1].timestamp()[1],
    )
    assert counts.named == {"kpipe:redriven": 2, "kpipe:parked": 1}


def test_the_redrives_own_counters_are_none_of_the_segments(
    processor: RedriveProcessor, inner: Inner, batch: MakeBatch
) -> None:
    counts = Counts(named={"kpipe:redriven": 7, "refunds": 2})
    processor.process(batch(LETTER), counts, {}, math.inf)
    assert inner.counters == [{"refunds": 2}]
    assert counts.named == {"refunds": 2, "kpipe:redriven": 8}


def test_letters_without_time_left_are_not_handled(
    processor: RedriveProcessor, inner: Inner, ledger: Ledger, batch: MakeBatch
) -> None:
    inner.most = 1
    counts = Counts()
    assert processor.process(batch(LETTER, OF_OTHERS, LETTER, OF_OTHERS), counts, {}, math.inf) == 2
    assert ledger.entries == [(0, "redriven")]
    assert counts.named == {"kpipe:redriven": 1, "kpipe:not_selected": 1}


def test_the_letters_before_a_stop_are_done(
    processor: RedriveProcessor, inner: Inner, ledger: Ledger, batch: MakeBatch
) -> None:
    inner.stops_at = 2
    counts = Counts()
    with pytest.raises(PartitionHaltedError, match="stop here"):
        processor.process(batch(LETTER, OF_OTHERS, LETTER, LETTER), counts, {}, math.inf)
    assert ledger.entries == [(0, "redriven")]
    assert counts.named == {"kpipe:redriven": 1, "kpipe:not_selected": 1}


def test_a_letter_of_another_version_stops_the_partition_behind_those_before_it(
    processor: RedriveProcessor, ledger: Ledger, batch: MakeBatch, message: Callable[..., Any]
) -> None:
    key, value, headers = write_envelope(LETTER, DIALECTS["kpipe"])
    newer = (value or b"").replace(b'"schema_version":1', b'"schema_version":99')
    unreadable = message(1, newer, key=key, headers=headers, topic="orders.dead", partition=0)
    with pytest.raises(PartitionHaltedError, match="offset 1: the dead letter there cannot be read") as stop:
        processor.process([*batch(LETTER), unreadable], Counts(), {}, math.inf)
    assert stop.value.next_offset == 1
    assert ledger.entries == [(0, "redriven")]


def test_an_entry_that_cannot_be_written_fails_the_chunk(
    processor: RedriveProcessor, ledger: Ledger, batch: MakeBatch
) -> None:
    ledger.refused = {1}
    with pytest.raises(ChunkFailedError, match="too large") as failure:
        processor.process(batch(LETTER, LETTER), Counts(), {}, math.inf)
    ((offset, fault),) = failure.value.faults.items()
    assert (offset, fault.kind) == (1, "dead_letter")


def test_a_letter_whose_entry_was_refused_before_stops_the_partition(
    processor: RedriveProcessor, ledger: Ledger, batch: MakeBatch
) -> None:
    known = {1: Fault.of(ValueError("too large"), "kafka", "dead_letter")}
    with pytest.raises(PartitionHaltedError, match=r"offset 1: .*rejected \(too large\): .*'orders.dead'") as stop:
        processor.process(batch(LETTER, LETTER, LETTER), Counts(), known, math.inf)
    assert stop.value.next_offset == 1
    assert ledger.entries == [(0, "redriven")]


def test_the_ledger_is_read_before_any_letter_is_in_hand(
    processor: RedriveProcessor, inner: Inner, ledger: Ledger
) -> None:
    processor.open()
    assert (inner.calls, ledger.read) == (["open"], 1)
    assert processor.process([], Counts(), {}, math.inf) == 0
    assert ledger.read == 1
    assert processor.waits == inner.waits
    processor.close()
    assert inner.calls == ["open", "close"]
