"""What becomes of records that go through Arrow batches, in both deliveries, on a real broker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.pipeline.policies import RetryPolicy
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.topics import Seen, Sent, committed, fill, numbered, read_all

DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")
both_deliveries = pytest.mark.parametrize("delivery", DELIVERIES)


def ids(records: list[Seen]) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in records]


def run(broker: SandboxBroker, records: list[Sent], *names: str, **spec: Any) -> tuple[Bench, PartitionProgress]:
    bench = Bench.make(broker.bootstrap_servers, segments=list(names), **spec)
    fill(bench.bootstrap, bench.topic, records)
    (progress,) = bench.work(bench.plan())
    return bench, progress


@both_deliveries
@pytest.mark.parametrize("segment", ["batch_kit:untouched", "batch_kit:only_values"])
def test_untouched_columns_are_byte_for_byte_as_they_were(
    broker: SandboxBroker, delivery: Delivery, segment: str
) -> None:
    headers = [("a", b"1"), ("b", None), ("a", b"\xff\x00"), ("c", b"")]
    sent = [
        Sent(b"\x00binary\xff", b"key", headers=headers, timestamp=1_700_000_000_000),
        Sent(None, b"tombstone", timestamp=1_700_000_000_001),
        Sent(b"", None, timestamp=1_700_000_000_002),
        Sent(None, None, headers=[("only", b"")], timestamp=1_700_000_000_003),
    ]

    bench, progress = run(broker, sent, segment, delivery=delivery)

    assert progress.complete, progress.reason
    assert progress.counts == Counts(read=4, written=4)
    found = read_all(bench.bootstrap, bench.output)
    assert [(each.value, each.key, each.headers, each.timestamp[1]) for each in found] == [
        (each.value, each.key, each.headers, each.timestamp) for each in sent
    ]


@both_deliveries
def test_records_and_batches_mix_filter_and_multiply(broker: SandboxBroker, delivery: Delivery) -> None:
    bench, progress = run(
        broker,
        numbered(3_000),
        *("orders_kit:parse", "batch_kit:only_even", "batch_kit:twice", "batch_kit:with_header", "orders_kit:Opened"),
        delivery=delivery,
        chunk_records=700,
    )

    assert progress.complete, progress.reason
    assert progress.counts == Counts(read=3_000, written=3_000, filtered=1_500)
    found = read_all(bench.bootstrap, bench.output)
    assert ids(found) == [number for number in range(0, 3_000, 2) for _ in range(2)]
    assert [each.key for each in found] == [b"first", b"second"] * 1_500
    assert {tuple(name for name, _ in each.headers) for each in found} == {("from", "opened-for")}


@both_deliveries
def test_of_a_batch_that_raises_only_the_poison_records_are_dead_letters(
    broker: SandboxBroker, delivery: Delivery
) -> None:
    poison = {0, 41, 42, 1_500, 2_499}
    records = numbered(2_500)
    for number in poison:
        records[number] = Sent(b"{broken", str(number).encode(), headers=[("trace", b"\x01"), ("trace", None)])

    bench, progress = run(broker, records, "batch_kit:parse", delivery=delivery)

    assert progress.counts == Counts(read=2_500, written=2_495, dead_lettered=5)
    found = read_all(bench.bootstrap, bench.output)
    assert ids(found) == [number for number in range(2_500) if number not in poison]
    assert all(json.loads(each.value or b"")["seen"] for each in found)
    dead = read_all(bench.bootstrap, bench.dead)
    assert [int(each.header("kpipe-source-offset")) for each in dead] == sorted(poison)
    for letter in dead:
        assert letter.value == b"{broken"
        assert letter.headers[:2] == [("trace", b"\x01"), ("trace", None)]
        assert letter.header("kpipe-fault-component") == "batch_kit:parse"
        assert letter.header("kpipe-fault-kind") == "segment"
        assert letter.header("kpipe-fault-exception") == "json.decoder.JSONDecodeError"
        assert "line 1 column 2" in letter.header("kpipe-fault-message")
        assert "batch_kit.py" in letter.header("kpipe-fault-stacktrace")


@both_deliveries
def test_an_offset_that_was_not_in_the_batch_is_a_fault_of_all_its_records(
    broker: SandboxBroker, delivery: Delivery
) -> None:
    bench, progress = run(broker, numbered(20), "batch_kit:someone_elses_offset", delivery=delivery)

    assert progress.counts == Counts(read=20, dead_lettered=20)
    dead = read_all(bench.bootstrap, bench.dead)
    assert ids(dead) == list(range(20))
    assert {"source_offset 999 came back" in each.header("kpipe-fault-message") for each in dead} == {True}


@both_deliveries
def test_a_record_too_large_for_the_producer_is_a_dead_letter(broker: SandboxBroker, delivery: Delivery) -> None:
    bench, progress = run(broker, numbered(30), "batch_kit:too_large", delivery=delivery)

    assert progress.counts == Counts(read=30, written=27, dead_lettered=3)
    dead = read_all(bench.bootstrap, bench.dead)
    assert ids(dead) == [3, 13, 23]
    assert {each.header("kpipe-fault-kind") for each in dead} == {"destination"}


@both_deliveries
def test_of_a_record_that_cannot_be_written_whole_nothing_is_written(broker: SandboxBroker, delivery: Delivery) -> None:
    bench, progress = run(broker, numbered(10), "batch_kit:second_too_large", delivery=delivery)

    assert progress.counts == Counts(read=10, written=9, dead_lettered=1)
    assert ids(read_all(bench.bootstrap, bench.dead)) == [5]
    written = ids(read_all(bench.bootstrap, bench.output))
    if delivery == "exactly_once":
        assert written == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    else:
        assert set(written) >= {0, 1, 2, 3, 4, 6, 7, 8, 9}


@both_deliveries
def test_a_partition_stops_in_front_of_its_first_poison_record(broker: SandboxBroker, delivery: Delivery) -> None:
    records = numbered(20)
    records[12] = Sent(b"{broken", b"12")

    bench, progress = run(broker, records, "batch_kit:parse", delivery=delivery, dead_letter=None)

    assert (progress.next_offset, progress.counts) == (12, Counts(read=12, written=12))
    assert "offset 12: segment batch_kit:parse: json.decoder.JSONDecodeError" in (progress.reason or "")
    assert ids(read_all(bench.bootstrap, bench.output)) == list(range(12))
    assert committed(bench.bootstrap, f"{bench.pipeline.group}.kpipe", bench.topic, 1) == {0: 12}


@both_deliveries
@pytest.mark.parametrize("delay", [0.001, 0.3], ids=["within the chunk", "between chunks"])
def test_a_record_that_failed_alone_is_tried_again(broker: SandboxBroker, delivery: Delivery, delay: float) -> None:
    bench, progress = run(
        broker,
        numbered(1),
        "batch_kit:Opened",
        delivery=delivery,
        retry=RetryPolicy.fixed(3, delay),
        chunk_seconds=0.2,
    )

    assert progress.complete, progress.reason
    # A try that failed counts, too, but for one that ended its chunk.
    tries = 3 if delay < 0.2 else 1
    assert progress.counts == Counts(read=1, written=1, retried=2, named={"rows": tries})
    assert [each.key for each in read_all(bench.bootstrap, bench.output)] == [b"0"]


COUNTED = ["faulty_kit:Counting", "batch_kit:Counting", "batch_kit:Shy"]


@both_deliveries
@pytest.mark.parametrize("delay", [0.001, 0.5], ids=["within the chunk", "between chunks"])
def test_segments_count_each_record_once_and_once_more_for_each_try_of_a_record_by_itself(
    broker: SandboxBroker, delivery: Delivery, delay: float
) -> None:
    bench, progress = run(
        broker,
        numbered(20),
        *COUNTED,
        delivery=delivery,
        retry=RetryPolicy.fixed(4, delay),
        chunk_seconds=0.2,
    )

    assert progress.complete, progress.reason
    # It is the record with the id 5 that is shy.
    again = 2 if delay < 0.2 else 0
    named = {"seen": 20 + again, "ids": sum(range(20)) + 5 * again, "rows": 20 + again, "passed": 20 + again}
    assert progress.counts == Counts(read=20, written=20, retried=2, named=named)
    assert ids(read_all(bench.bootstrap, bench.output)) == list(range(20))


@both_deliveries
def test_segments_have_counted_the_terminal_records_of_a_stopped_partition(
    broker: SandboxBroker, delivery: Delivery
) -> None:
    _, progress = run(broker, numbered(20), *COUNTED, delivery=delivery, on_fault="stop_partition")

    assert progress.next_offset == 5
    named = {"seen": 5, "ids": 10, "rows": 5, "passed": 5}
    assert progress.counts == Counts(read=5, written=5, named=named)
