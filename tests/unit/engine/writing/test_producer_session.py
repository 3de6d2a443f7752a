from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from kpipe_engine.errors import ChunkDroppedError, ChunkFailedError, PartitionHaltedError
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing.backpressure import Admission
from kpipe_engine.writing.producer_session import ProducerSession, TracingSession

Make = Callable[[type[ProducerSession]], ProducerSession]

TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)


@pytest.fixture
def make() -> Iterator[Make]:
    """With confluent-kafka's own producer, which needs no broker to take messages into its queue."""
    made: list[ProducerSession] = []

    def open_one(kind: type[ProducerSession]) -> ProducerSession:
        nobody: Any = None
        admission = Admission(nobody, nobody, nobody, StopSignal(), lambda: False)
        made.append(kind({"bootstrap.servers": "", "log_level": 0}, "out", admission))
        return made[-1]

    yield open_one
    for each in made:
        each.close()


def test_a_message_is_queued_without_saying_of_which_record_it_is(make: Make) -> None:
    acks = make(ProducerSession)
    acks.produce_untraced("out", b"v")
    assert len(acks.producer) == 1
    assert acks.on_delivery_of(5, "destination") is None


def test_where_refusals_are_traced_nothing_goes_untraced(make: Make) -> None:
    acks = make(TracingSession)
    with pytest.raises(BufferError):
        acks.produce_untraced("out", b"v")
    assert len(acks.producer) == 0


def test_what_is_never_sent_is_a_refusal_too(make: Make) -> None:
    acks = make(ProducerSession)
    acks.produce_untraced("out", b"v")
    acks.producer.purge()
    with pytest.raises(ChunkDroppedError, match="1 records were dropped before they were sent"):
        acks.wait()


def test_a_traced_refusal_names_its_record(make: Make, message: Callable[..., Message]) -> None:
    acks = make(TracingSession)
    note, note_too = acks.on_delivery_of(5, "destination"), acks.on_delivery_of(6, "dead_letter")
    assert note
    assert note_too
    note(None, message(0))
    assert not acks.refused
    note(TOO_LARGE, message(0))
    note_too(TOO_LARGE, message(1))
    assert acks.refused
    with pytest.raises(ChunkFailedError, match="the broker refused 2 records, the first with: KafkaError") as failure:
        acks.wait()
    assert {at: fault.kind for at, fault in failure.value.faults.items()} == {5: "destination", 6: "dead_letter"}
    assert not acks.refused


def test_no_record_is_at_fault_for_what_ails_the_cluster(make: Make, message: Callable[..., Message]) -> None:
    acks = make(TracingSession)
    note = acks.on_delivery_of(5, "destination")
    assert note
    note(KafkaError(KafkaError._MSG_TIMED_OUT), message(0))
    with pytest.raises(ChunkFailedError) as failure:
        acks.wait()
    assert failure.value.faults == {}


def test_a_successor_and_a_topic_that_is_gone_are_told_apart_from_refusals(make: Make) -> None:
    acks = make(TracingSession)
    note = acks.on_delivery_of(5, "destination")
    assert note
    note(KafkaError(KafkaError._FENCED), Message(topic="out"))
    with pytest.raises(KafkaException):
        acks.wait()
    note(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), Message(topic="out"))
    with pytest.raises(PartitionHaltedError, match="topic 'out' cannot be written to"):
        acks.wait()


def test_what_was_dropped_before_it_was_sent_was_refused_by_nobody(make: Make, message: Callable[..., Message]) -> None:
    acks = make(TracingSession)
    note = acks.on_delivery_of(5, "destination")
    assert note
    note(KafkaError(KafkaError._PURGE_QUEUE), message(0))
    with pytest.raises(ChunkDroppedError, match="1 records were dropped before they were sent"):
        acks.wait()
    note(KafkaError(KafkaError._PURGE_QUEUE), message(0))
    note(TOO_LARGE, message(0))
    with pytest.raises(ChunkFailedError, match="the broker refused 2 records") as failure:
        acks.wait()
    assert list(failure.value.faults) == [5]
