from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from kpipe_engine.errors import ChunkDroppedError, ChunkFailedError, PartitionHaltedError
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.writing.backpressure import Admission
from kpipe_engine.writing.producer_session import ProducerSession

MakeMessage = Callable[..., Message]

TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)


@pytest.fixture
def real() -> Iterator[ProducerSession]:
    """With confluent-kafka's own producer, which needs no broker to take messages into its queue."""
    nobody: Any = None
    made = ProducerSession(
        {"bootstrap.servers": "", "log_level": 0}, "out", Admission(nobody, nobody, StopSignal(), lambda: False)
    )
    yield made
    made.close()


def reject(session: ProducerSession, producer: Any, error: KafkaError, message: Message, offset: int = 5) -> None:
    """Have the broker reject a message that comes of the record at this offset."""
    session.produce(offset, "destination", "out", b"v")
    producer.callbacks[-1](error, message)


@pytest.fixture
def isolating(session: ProducerSession) -> ProducerSession:
    session.renew(isolates=True)
    return session


def test_a_message_is_queued_without_saying_of_which_record_it_is(session: ProducerSession, producer: Any) -> None:
    session.produce_fast("out", b"v")
    session.produce(5, "destination", "out", b"v")
    assert [taken["record"] for taken in producer.taken] == [None, None]
    assert "batch.num.messages" not in producer.settings


def test_isolated_records_are_all_traced(isolating: ProducerSession, producer: Any) -> None:
    with pytest.raises(BufferError):
        isolating.produce_fast("out", b"v")
    assert producer.taken == []
    isolating.produce(5, "destination", "out", b"v")
    assert [taken["record"] for taken in producer.taken] == [(5, "destination")]
    assert producer.settings["batch.num.messages"] == 1


def test_each_producer_has_a_generation(session: ProducerSession) -> None:
    first = session.generation
    session.renew(isolates=True)
    session.renew(isolates=False)
    assert session.generation == first + 2


def test_a_record_that_is_never_sent_is_a_rejection_too(real: ProducerSession) -> None:
    real.produce_fast("out", b"v")
    real._producer.purge()
    with pytest.raises(ChunkDroppedError, match="1 records were dropped before they were sent"):
        real.wait()


def test_a_rejection_names_its_record_only_if_records_are_isolated(
    session: ProducerSession, producer: Any, message: MakeMessage
) -> None:
    producer.settings["on_delivery"](TOO_LARGE, message(0))
    assert session.has_rejections
    with pytest.raises(ChunkFailedError, match="the broker rejected 1 records, the first with: KafkaError") as failure:
        session.wait()
    assert failure.value.faults == {}


def test_a_traced_rejection_names_its_record(isolating: ProducerSession, producer: Any, message: MakeMessage) -> None:
    isolating.produce(5, "destination", "out", b"v")
    isolating.produce(6, "dead_letter", "out.dead", b"v")
    note, note_too = producer.callbacks
    note(None, message(0))
    assert not isolating.has_rejections
    note(TOO_LARGE, message(0))
    note_too(TOO_LARGE, message(1))
    assert isolating.has_rejections
    with pytest.raises(ChunkFailedError, match="the broker rejected 2 records, the first with: KafkaError") as failure:
        isolating.wait()
    assert {at: fault.kind for at, fault in failure.value.faults.items()} == {5: "destination", 6: "dead_letter"}
    assert not isolating.has_rejections


def test_an_answer_to_an_earlier_producer_is_no_rejection_by_the_next(
    isolating: ProducerSession, producer: Any, message: MakeMessage
) -> None:
    """A late call that was abandoned may still serve the callbacks of its producer."""
    isolating.produce(5, "destination", "out", b"v")
    isolating.renew(isolates=True)
    producer.callbacks[-1](TOO_LARGE, message(0))
    assert not isolating.has_rejections


def test_no_record_is_at_fault_for_what_ails_the_cluster(
    isolating: ProducerSession, producer: Any, message: MakeMessage
) -> None:
    reject(isolating, producer, KafkaError(KafkaError._MSG_TIMED_OUT), message(0))
    with pytest.raises(ChunkFailedError) as failure:
        isolating.wait()
    assert failure.value.faults == {}


def test_a_successor_and_a_topic_that_is_gone_are_distinguished_from_rejections(
    isolating: ProducerSession, producer: Any
) -> None:
    reject(isolating, producer, KafkaError(KafkaError._FENCED), Message(topic="out"))
    with pytest.raises(KafkaException):
        isolating.wait()
    reject(isolating, producer, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), Message(topic="out"))
    with pytest.raises(PartitionHaltedError, match="topic 'out' cannot be written to"):
        isolating.wait()


def test_a_record_dropped_before_it_was_sent_is_no_rejection(
    isolating: ProducerSession, producer: Any, message: MakeMessage
) -> None:
    dropped = KafkaError(KafkaError._PURGE_QUEUE)
    reject(isolating, producer, dropped, message(0))
    with pytest.raises(ChunkDroppedError, match="1 records were dropped before they were sent"):
        isolating.wait()
    reject(isolating, producer, dropped, message(0), offset=4)
    reject(isolating, producer, TOO_LARGE, message(0))
    with pytest.raises(ChunkFailedError, match="the broker rejected 2 records") as failure:
        isolating.wait()
    assert list(failure.value.faults) == [5]
