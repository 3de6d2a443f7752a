from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaSource, OnDataLoss
from kpipe_engine.errors import PartitionHaltedError
from kpipe_engine.reading import shared_consumer
from kpipe_engine.reading.range_reader import STALL_SECONDS, RangeReader
from kpipe_engine.reading.shared_consumer import SharedConsumer
from tests.kit.plans import plan_of

RANGE = PartitionRange(3, 10, 20, None)
MakeMessage = Callable[..., Message]


class Log:
    """A consumer over a log in memory. It gives out what it has, and what happens beside it, as the client would."""

    def __init__(self, offsets: Sequence[int], message: MakeMessage) -> None:
        self.offsets, self.message = list(offsets), message
        self.first, self.at = 0, 0
        self.events: list[Message] = []
        self.beside: list[Message] = []
        """What happens in the fetch that gives out the next records."""
        self.assigned: list[int | None] = []

    def close(self) -> None:
        """Nothing is held."""

    def list_topics(self, topic: str, timeout: float) -> None:
        """The leader is known."""

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self.assigned.append(partitions[0].offset if partitions else None)
        self.at = self.assigned[-1] or 0

    def consume(self, most: int, timeout: float) -> list[Message]:
        if self.events:
            return [self.events.pop(0)]
        # What was fetched ahead may come with it: the range is no business of the client's.
        found = [each for each in self.offsets if each >= self.at][:most]
        if found:
            self.at = found[-1] + 1
        events, self.beside = self.beside, []
        return [*(self.message(each) for each in found), *events]

    def position(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition("orders", 3, self.at)]

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        return self.first, 1_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def open_source(monkeypatch: pytest.MonkeyPatch, message: MakeMessage) -> Callable[..., tuple[RangeReader, Log]]:
    """A source over a log that holds these offsets, and the log."""

    def make(offsets: Sequence[int], on_data_loss: OnDataLoss = "stop_partition") -> tuple[RangeReader, Log]:
        log = Log(offsets, message)
        monkeypatch.setattr(shared_consumer, "Consumer", lambda settings: log)
        consumer = SharedConsumer({}, plan_of(RANGE), slot=0)
        return RangeReader(consumer, KafkaSource("orders", on_data_loss=on_data_loss), "orders"), log

    return make


def offsets(messages: Sequence[Any]) -> list[int]:
    return [each.offset() for each in messages]


def test_the_record_at_the_end_is_not_of_the_range(open_source: Any) -> None:
    """Holes at the end, from markers or compaction: more is asked for than the range still holds."""
    source, _ = open_source([10, 11, 20, 21])
    source.start_at(RANGE, 10)
    assert offsets(source.read(1_000)) == [10, 11]
    assert (source.finished, source.next_offset) == (True, 20)


def test_unread_messages_come_first_again(open_source: Any) -> None:
    source, _ = open_source(range(10, 15))
    source.start_at(RANGE, 10)
    messages = source.read(5)
    source.give_back(messages[2:])
    assert source.next_offset == 12
    assert offsets(source.read(5)) == [12, 13, 14]
    assert source.next_offset == 15


def test_the_reader_skips_completed_spans(open_source: Any) -> None:
    source, log = open_source(range(10, 20))
    source.start_at(RANGE, 10, [(10, 13), (15, 17)])
    assert (log.assigned, source.next_offset) == ([13], 13)
    assert offsets(source.read(3)) == [13, 14]
    assert offsets(source.read(1_000)) == [17, 18, 19]
    assert source.finished


def test_a_broker_that_says_nothing_is_not_waited_for_for_ever(open_source: Any, clock: list[float]) -> None:
    source, _ = open_source([])
    source.start_at(RANGE, 10)
    clock[0] += STALL_SECONDS
    assert source.read(10) == []
    clock[0] += 1
    with pytest.raises(PartitionHaltedError, match="no answer from the broker about offset 10 for 120 s"):
        source.read(10)


def test_each_message_restarts_the_clock(open_source: Any, clock: list[float]) -> None:
    source, log = open_source([10])
    source.start_at(RANGE, 10)
    clock[0] += STALL_SECONDS
    assert offsets(source.read(10)) == [10]
    clock[0] += STALL_SECONDS
    assert source.read(10) == []
    log.offsets.append(11)
    assert offsets(source.read(10)) == [11]


def out_of_range(message: MakeMessage) -> Message:
    return message(10, error=KafkaError(KafkaError._AUTO_OFFSET_RESET, "gone"))


def test_records_that_have_left_the_topic_stop_the_partition(open_source: Any, message: MakeMessage) -> None:
    source, log = open_source([])
    log.first, log.events = 15, [out_of_range(message)]
    source.start_at(RANGE, 10)
    with pytest.raises(PartitionHaltedError, match="records 10 to 14 have left the topic before they were read"):
        source.read(10)


def test_records_read_before_a_loss_come_first(open_source: Any, message: MakeMessage) -> None:
    """Nobody can read it again."""
    source, log = open_source(range(10, 13))
    log.first, log.beside = 15, [out_of_range(message)]
    source.start_at(RANGE, 10)
    messages = source.read(1_000)
    assert offsets(messages) == [10, 11, 12]
    source.give_back(messages[1:])
    assert offsets(source.read(1_000)) == [11, 12]
    with pytest.raises(PartitionHaltedError, match="records 13 to 14 have left the topic"):
        source.read(1_000)
    assert source.next_offset == 13


@pytest.mark.parametrize(("first", "lost", "goes_on_at"), [(15, 5, 15), (500, 10, 20)])
def test_or_are_passed_over_and_counted_as_far_as_the_range_goes(
    open_source: Any, message: MakeMessage, first: int, lost: int, goes_on_at: int
) -> None:
    source, log = open_source(range(15, 30), "skip")
    log.first, log.events = first, [out_of_range(message)]
    source.start_at(RANGE, 10)
    assert source.read(10) == []
    assert (source.take_lost(), source.take_lost(), source.next_offset) == (lost, 0, goes_on_at)
    assert source.finished is (goes_on_at == RANGE.end)


def test_each_read_without_prefetch_has_a_client_of_its_own(
    open_source: Any, message: MakeMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[tuple[int, int]] = []

    def fetch(settings: Any, start: TopicPartition, most: int) -> list[Message]:
        fetched.append((start.offset, most))
        return [message(each) for each in range(start.offset, min(start.offset + most, start.offset + 2))]

    monkeypatch.setattr(shared_consumer, "fetch_alone", fetch)
    source, log = open_source(range(10, 30))
    source.start_at(RANGE, 10)
    source.fetch_alone(True)
    assert source.range is None
    source.start_at(RANGE, 12)
    assert [offsets(source.read(1_000)), offsets(source.read(1))] == [[12, 13], [14]]
    assert fetched == [(12, 8), (14, 1)]
    assert log.assigned == [10, None]
    source.fetch_alone(True)
    assert source.range is RANGE
    source.fetch_alone(False)
    source.start_at(RANGE, 15)
    assert offsets(source.read(2)) == [15, 16]
    assert log.assigned == [10, None, 15]
