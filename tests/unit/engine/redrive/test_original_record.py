from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME

from airflow_provider_kpipe import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.dead_letters.dead_letter import Coordinates, DeadLetter
from airflow_provider_kpipe.contract.dead_letters.dialects import FAULT_HEADERS
from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter
from airflow_provider_kpipe.record import Origin, Record, SourceMessage
from kpipe_engine.redrive.original_record import OriginalRecord, back_to_source, choose_restore
from kpipe_engine.writing.header_rules import HeaderRules
from kpipe_engine.writing.producer_session import PARTITIONER_CHOOSES
from tests.kit.letters import LETTER

PIPELINE = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"))
KEEPING = replace(PIPELINE, destination=KafkaDestination("out", keep_partition=True))
ELSEWHERE = replace(LETTER, source=Coordinates("returns", 1, 2))
MakeMessage = Callable[..., SourceMessage]


@pytest.fixture
def original(message: MakeMessage) -> Any:
    """A letter, written a day after its record."""
    written = (TIMESTAMP_CREATE_TIME, LETTER.source.timestamp + 86_400_000)
    headers = [("kpipe-pipeline", b"orders")]
    return message(78, b"letter", topic="orders.dead", partition=9, headers=headers, timestamp=written)


def test_for_the_output_it_is_the_record_as_it_was_at_the_letters_offset(original: Any) -> None:
    restored = choose_restore(PIPELINE, "output")(original, LETTER)
    assert (restored.key(), restored.value(), restored.headers()) == (LETTER.key, LETTER.value, list(LETTER.headers))
    assert restored.timestamp() == (1, LETTER.source.timestamp)
    assert (restored.topic(), restored.partition(), restored.offset()) == ("orders.dead", 9, 78)
    assert restored.original is original


def test_a_letter_that_does_not_say_when_its_record_was_made_keeps_its_own_time(original: Any) -> None:
    letter = replace(LETTER, source=Coordinates("orders", 3, 5), headers=())
    restored = choose_restore(PIPELINE, "output")(original, letter)
    assert restored.timestamp() == original.timestamp()
    assert restored.headers() is None


def test_for_the_source_it_bears_what_lets_a_later_fault_count_on(original: Any) -> None:
    headers: list[Any] = choose_restore(PIPELINE, "source")(original, LETTER).headers() or []
    assert tuple(headers[: len(LETTER.headers)]) == LETTER.headers
    assert all(name in FAULT_HEADERS for name, _ in headers[len(LETTER.headers) :])
    told = read_dead_letter(LETTER.key, LETTER.value, headers)
    assert told
    assert (told.attempt, told.headers) == (1, LETTER.headers)
    assert told.first == LETTER.first_fault
    assert (told.first.offset, told.first.exception_class) == (5, LETTER.fault.exception_class)


@pytest.mark.parametrize(
    ("pipeline", "target", "letter", "partition"),
    [
        (PIPELINE, "source", LETTER, 3),
        (PIPELINE, "source", ELSEWHERE, PARTITIONER_CHOOSES),
        (PIPELINE, "output", LETTER, 9),
        (KEEPING, "output", LETTER, 3),
        (KEEPING, "output", ELSEWHERE, 9),
    ],
    ids=["home", "no home", "not kept", "kept", "nothing to keep"],
)
def test_the_partition_that_it_goes_to(
    original: Any, pipeline: KafkaPipeline, target: Any, letter: DeadLetter, partition: int
) -> None:
    assert choose_restore(pipeline, target)(original, letter).partition() == partition


def test_the_source_topic_gets_it_with_its_partition_and_its_time(original: Any, session: Any, producer: Any) -> None:
    restored = choose_restore(PIPELINE, "source")(original, LETTER)
    back_to_source(PIPELINE, session).copy(restored)
    (taken,) = producer.taken
    assert (taken["topic"], taken["partition"], taken["timestamp"]) == ("orders", 3, LETTER.source.timestamp)
    assert isinstance(restored, OriginalRecord)


def test_records_of_one_home_are_told_apart_by_where_their_letters_are(message: MakeMessage) -> None:
    """Readers who remove duplicates by the stamp would lose one of them otherwise."""
    letters = [message(7, b"letter", topic="orders.dead", partition=partition) for partition in (0, 1)]
    restored = [choose_restore(KEEPING, "output")(each, LETTER) for each in letters]
    assert [each.partition() for each in restored] == [3, 3]
    rules = HeaderRules(KafkaDestination("out", copy_headers=False, stamp_source=True))
    stamps = [rules.apply(None, each) for each in restored]
    assert [dict(each)["kpipe-source-partition"] for each in stamps] == [b"0", b"1"]
    ids = {Record(each, Origin("run")).metadata.correlation_id for each in restored}
    assert ids == {"orders.dead-0-7", "orders.dead-1-7"}
