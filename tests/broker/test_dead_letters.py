"""Dead letters as another program finds them in their topic, on a real broker."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe import KafkaDeadLetter, KafkaSource
from airflow_provider_kpipe.contract.dead_letters.dead_letter import DeadLetter
from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter
from airflow_provider_kpipe.contract.pipeline.declaration import DeadLetterDialect, DeadLetterFormat
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from tests.kit.pipelines import IMPATIENT, Bench
from tests.kit.topics import Seen, Sent, fill, numbered, read_all

POISON = Sent(
    b"{broken \x00\xff", b"41", headers=[("trace", b"\x01\xff"), ("trace", None)], timestamp=1_700_000_000_000
)
NAMES: dict[DeadLetterDialect, tuple[str, str]] = {
    "kpipe": ("kpipe-source-offset", "kpipe-fault-exception"),
    "connect": ("__connect.errors.offset", "__connect.errors.exception.class.name"),
    "spring": ("kafka_dlt-original-offset", "kafka_dlt-exception-fqcn"),
    "streams": ("__streams.errors.offset", "__streams.errors.exception"),
}
DIALECTS = tuple(NAMES)
FORMATS: tuple[DeadLetterFormat, ...] = ("raw", "envelope")


def dead_letter_of(broker: SandboxBroker, **declared: Any) -> tuple[Bench, Seen]:
    """What becomes of the poison record among ten."""
    bench = Bench.make(broker.bootstrap_servers, segments=["orders_kit:parse"], dead_letter=declared)
    records = numbered(10)
    records[4] = POISON
    fill(bench.bootstrap, bench.topic, records)
    (progress,) = bench.work(bench.plan())
    assert (progress.counts.written, progress.counts.dead_lettered, progress.reason) == (9, 1, None)
    (seen,) = read_all(bench.bootstrap, bench.dead)
    return bench, seen


def read(seen: Seen) -> DeadLetter:
    letter = read_dead_letter(seen.key, seen.value, seen.headers)
    assert letter
    return letter


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dead_letter_says_everything_in_each_dialect_and_format(
    broker: SandboxBroker, dialect: DeadLetterDialect, form: DeadLetterFormat
) -> None:
    bench, seen = dead_letter_of(broker, dialect=dialect, format=form)

    letter = read(seen)
    assert (letter.key, letter.value, list(letter.headers)) == (POISON.key, POISON.value, POISON.headers)
    assert (letter.source.topic, letter.source.partition, letter.source.offset) == (bench.topic, 0, 4)
    assert (letter.source.timestamp, letter.source.timestamp_kind) == (1_700_000_000_000, "create_time")
    assert (letter.pipeline, letter.group, letter.run_key) == (bench.topic, bench.topic, "run-1")
    assert (letter.fault.component, letter.fault.kind, letter.fault.attempts) == ("orders_kit:parse", "segment", 1)
    assert "orders_kit.py" in letter.fault.stacktrace
    assert letter.fault.occurred_at
    assert (letter.attempt, letter.first) == (1, None)
    assert (seen.key, seen.timestamp[1]) == (POISON.key, 1_700_000_000_000)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tools_of_a_dialect_find_its_headers(broker: SandboxBroker, dialect: DeadLetterDialect) -> None:
    _, seen = dead_letter_of(broker, dialect=dialect)

    assert seen.headers[:2] == POISON.headers
    assert seen.value == POISON.value
    offset, exception = NAMES[dialect]
    expected = (4).to_bytes(8, "big") if dialect == "spring" else b"4"
    assert dict(seen.headers)[offset] == expected
    assert "Error" in seen.header(exception)


def test_an_envelope_is_read_without_looking_at_headers(broker: SandboxBroker) -> None:
    _, seen = dead_letter_of(broker, format="envelope")
    document = json.loads(seen.value or b"")
    assert document["headers"] == [["trace", "Af8="], ["trace", None]]
    assert document["source"]["offset"] == 4
    assert "trace" not in dict(seen.headers)


def test_a_mapper_makes_of_it_what_it_likes(broker: SandboxBroker) -> None:
    bench, seen = dead_letter_of(broker, mapper="dead_letter_kit:as_ticket")
    assert json.loads(seen.value or b"")["record"] == f"{bench.topic}@4"
    assert seen.headers[:3] == [*POISON.headers, ("ticket", b"open")]
    assert read(seen).source.offset == 4


def test_a_mapper_that_is_not_there_stops_the_partition_in_front_of_the_record(broker: SandboxBroker) -> None:
    bench = Bench.make(
        broker.bootstrap_servers, segments=["orders_kit:parse"], dead_letter={"mapper": "no_such_module:as_ticket"}
    )
    records = numbered(10)
    records[4] = POISON
    fill(bench.bootstrap, bench.topic, records)

    (progress,) = bench.work(bench.plan())

    assert (progress.next_offset, progress.complete) == (4, False)
    assert "no_such_module" in (progress.reason or "")
    assert read_all(bench.bootstrap, bench.dead) == []


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dead_letter_that_dies_again_keeps_its_first_fault(
    broker: SandboxBroker, dialect: DeadLetterDialect, form: DeadLetterFormat
) -> None:
    bench, seen = dead_letter_of(broker, dialect=dialect, format=form)
    first = read(seen)
    parked = f"{bench.topic}.parked"
    create_topics(bench.bootstrap, parked)
    again = replace(
        bench.pipeline,
        name=f"{bench.topic}-again",
        source=KafkaSource(bench.dead),
        segments=["dead_letter_kit:refuse"],
        dead_letter=KafkaDeadLetter(parked, dialect, form),
    )
    second_bench = replace(bench, pipeline=again)

    second_bench.work(second_bench.plan())

    (found,) = read_all(bench.bootstrap, parked)
    second = read(found)
    assert (second.key, second.value, second.headers) == (first.key, first.value, first.headers)
    assert (second.source.topic, second.source.offset, second.attempt) == (bench.dead, 0, 2)
    assert second.fault.component == "dead_letter_kit:refuse"
    assert second.first
    assert (second.first.topic, second.first.offset) == (bench.topic, 4)
    assert second.first.exception_class == first.fault.exception_class
    assert second.first.occurred_at == first.fault.occurred_at
    assert found.timestamp[1] == 1_700_000_000_000


def test_a_dead_letter_that_does_not_fit_stops_the_partition_in_front_of_it(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["orders_kit:parse"], dead_letter={"format": "envelope"})
    records = numbered(10)
    # It fits as it is; in base64 it is over the producer's limit of 1,000,000 bytes.
    records[4] = Sent(b"x" * 800_000, b"4")
    fill(bench.bootstrap, bench.topic, records)

    (progress,) = bench.work(bench.plan())

    assert (progress.next_offset, progress.complete) == (4, False)
    assert "dead letter cannot be written" in (progress.reason or "")
    assert "raise max.message.bytes of the dead-letter topic" in (progress.reason or "")
    assert len(read_all(bench.bootstrap, bench.output)) == 4
    assert read_all(bench.bootstrap, bench.dead) == []


@pytest.mark.parametrize("topic", ["gone", "compacted"])
def test_a_dead_letter_topic_that_takes_nothing_is_not_blamed_on_the_size(broker: SandboxBroker, topic: str) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["orders_kit:parse"])
    # A compacted topic takes no record without a key.
    fill(bench.bootstrap, bench.topic, [*numbered(4), replace(POISON, key=None)])
    plan, admin = bench.plan(), AdminClient(bench.settings)
    admin.delete_topics([bench.dead])[bench.dead].result(30)
    if topic == "compacted":
        create_topics(bench.bootstrap, bench.dead, config={"cleanup.policy": "compact"})

    (progress,) = bench.work(plan, **IMPATIENT)

    assert (progress.next_offset, progress.complete) == (4, False)
    assert f"offset 4: its dead letter cannot be written to topic '{bench.dead}'" in (progress.reason or "")
    assert "see that the topic is there" in (progress.reason or "")
    assert "max.message.bytes" not in (progress.reason or "")


def test_a_fault_in_any_language_fits(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["dead_letter_kit:lament"])
    fill(bench.bootstrap, bench.topic, numbered(2))

    (progress,) = bench.work(bench.plan())

    assert progress.counts.dead_lettered == 2
    for seen in read_all(bench.bootstrap, bench.dead):
        assert 0 < sum(len(name) + len(value or b"") for name, value in seen.headers) < 12_000
        assert read(seen).fault.message.startswith("帳?")
