"""Records that only the broker refuses, and says so while those behind them are still being handled."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from airflow_provider_kpipe.contract.pipeline.declaration import Delivery, KafkaDeadLetter, KafkaDestination
from airflow_provider_kpipe.contract.pipeline.policies import RetryPolicy
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from tests.kit.pipelines import IMPATIENT, Bench
from tests.kit.topics import fill, numbered, read_all

RECORDS = 200
A_DAY_MS = 86_400_000

both_deliveries = pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
every_handler = pytest.mark.parametrize(
    "segments",
    [["orders_kit:unhurriedly"], ["orders_kit:unhurriedly", "batch_kit:untouched"]],
    ids=["records", "batches"],
)


@both_deliveries
@every_handler
def test_one_that_is_too_large_for_the_topic_its_segment_chose_is_a_dead_letter(
    broker: SandboxBroker, delivery: Delivery, segments: list[str]
) -> None:
    chosen = ["faulty_kit:five_too_large_for_its_topic", *segments]
    bench = Bench.make(broker.bootstrap_servers, segments=chosen, delivery=delivery)
    create_topics(bench.bootstrap, f"{bench.topic}.small", config={"max.message.bytes": "200"})
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    (progress,) = bench.work(bench.plan())
    assert progress.complete, progress.reason
    assert (progress.counts.written, progress.counts.dead_lettered) == (RECORDS - 1, 1)
    assert [each.key for each in read_all(bench.bootstrap, bench.dead)] == [b"5"]


@both_deliveries
@every_handler
def test_one_for_a_topic_that_is_not_there_is_a_dead_letter(
    broker: SandboxBroker, delivery: Delivery, segments: list[str]
) -> None:
    chosen = [*segments, "faulty_kit:five_and_six_choose_no_topic_that_is_there"]
    bench = Bench.make(broker.bootstrap_servers, segments=chosen, delivery=delivery, chunk_records=20)
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    # A client waits for half a minute for a topic that may just have been made.
    (progress,) = bench.work(bench.plan(), **IMPATIENT)
    assert progress.complete, progress.reason
    assert (progress.counts.written, progress.counts.dead_lettered) == (RECORDS - 1, 1)
    assert [each.key for each in read_all(bench.bootstrap, bench.dead)] == [b"5"]
    assert {each.key for each in read_all(bench.bootstrap, bench.output)} == {
        str(each).encode() for each in range(RECORDS) if each != 5
    }


@both_deliveries
def test_a_dead_letter_stops_its_partition_in_front_of_the_record(broker: SandboxBroker, delivery: Delivery) -> None:
    segments = ["orders_kit:unhurriedly", "faulty_kit:fails_at_five"]
    bench = Bench.make(broker.bootstrap_servers, segments=segments, delivery=delivery)
    small = f"{bench.topic}.small"
    create_topics(bench.bootstrap, small, config={"max.message.bytes": "200"})
    bench = replace(bench, pipeline=replace(bench.pipeline, dead_letter=KafkaDeadLetter(small)))
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    (progress,) = bench.work(bench.plan())
    assert progress.next_offset == 5
    assert progress.reason
    assert progress.reason.startswith(f"offset 5: its dead letter cannot be written to topic '{small}'")
    assert "raise max.message.bytes" in progress.reason


@both_deliveries
@pytest.mark.parametrize("retry", [RetryPolicy(), RetryPolicy.fixed(2, 0.001)], ids=["one try", "two tries"])
def test_one_from_tomorrow_is_skipped_where_that_is_wanted(
    broker: SandboxBroker, delivery: Delivery, retry: RetryPolicy
) -> None:
    bench = Bench.make(
        broker.bootstrap_servers,
        topic_config={"message.timestamp.after.max.ms": str(2**63 - 1)},
        segments=["orders_kit:unhurriedly"],
        delivery=delivery,
        retry=retry,
        on_fault="skip",
    )
    records = numbered(RECORDS)
    records[5] = replace(records[5], timestamp=int(time.time() * 1000) + A_DAY_MS)
    fill(bench.bootstrap, bench.topic, records)
    (progress,) = bench.work(bench.plan())
    assert (progress.complete, progress.counts) == (True, Counts(read=RECORDS, written=RECORDS - 1, skipped=1))


def test_a_dead_letter_from_tomorrow_names_what_is_wrong_with_it(broker: SandboxBroker) -> None:
    bench = Bench.make(
        broker.bootstrap_servers,
        topic_config={"message.timestamp.after.max.ms": str(2**63 - 1)},
        segments=["faulty_kit:fails_at_five"],
    )
    records = numbered(10)
    records[5] = replace(records[5], timestamp=int(time.time() * 1000) + A_DAY_MS)
    fill(bench.bootstrap, bench.topic, records)
    (progress,) = bench.work(bench.plan())
    assert progress.next_offset == 5
    assert "raise message.timestamp.after.max.ms of the dead-letter topic" in (progress.reason or "")


@both_deliveries
@every_handler
def test_one_without_a_key_for_a_compacted_topic_is_a_dead_letter(
    broker: SandboxBroker, delivery: Delivery, segments: list[str]
) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=segments, delivery=delivery)
    compacted = f"{bench.topic}.compacted"
    create_topics(bench.bootstrap, compacted, config={"cleanup.policy": "compact"})
    bench = replace(bench, pipeline=replace(bench.pipeline, destination=KafkaDestination(compacted)))
    records = numbered(RECORDS)
    records[5] = replace(records[5], key=None)
    fill(bench.bootstrap, bench.topic, records)
    (progress,) = bench.work(bench.plan())
    assert progress.complete, progress.reason
    assert (progress.counts.written, progress.counts.dead_lettered) == (RECORDS - 1, 1)
