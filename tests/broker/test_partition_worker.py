"""What becomes of records in one partition, in both deliveries, on a real broker."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.contract.offsets.limits import Explicit
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from kpipe_engine.assignment.worker_position import WorkerPosition
from tests.kit.pipelines import IMPATIENT, Bench
from tests.kit.topics import Seen, Sent, committed, fill, fill_in_transactions, numbered, read_all

DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")
both_deliveries = pytest.mark.parametrize("delivery", DELIVERIES)


def ids(records: list[Seen]) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in records]


@both_deliveries
def test_records_go_through_unchanged(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery)
    headers = [("a", b"1"), ("b", None), ("a", b"\xff\x00"), ("c", b"")]
    sent = [
        Sent(b"\x00binary\xff", b"key", headers=headers, timestamp=1_700_000_000_000),
        Sent(None, b"tombstone", timestamp=1_700_000_000_001),
        Sent(b"", None, timestamp=1_700_000_000_002),
    ]
    fill(bench.bootstrap, bench.topic, sent)

    (progress,) = bench.work(bench.plan())

    assert progress.complete
    assert (progress.counts.read, progress.counts.written) == (3, 3)
    found = read_all(bench.bootstrap, bench.output)
    assert [(each.value, each.key, each.headers, each.timestamp[1]) for each in found] == [
        (each.value, each.key, each.headers, each.timestamp) for each in sent
    ]


@both_deliveries
def test_a_record_that_faults_is_a_dead_letter_with_its_story(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, segments=["orders_kit:parse"])
    records = numbered(100)
    records[41] = Sent(b"{broken", b"41", headers=[("trace", b"\x01"), ("trace", None)], timestamp=1_700_000_000_000)
    fill(bench.bootstrap, bench.topic, records)

    (progress,) = bench.work(bench.plan())

    assert (progress.counts.read, progress.counts.written, progress.counts.dead_lettered) == (100, 99, 1)
    assert ids(read_all(bench.bootstrap, bench.output)) == [number for number in range(100) if number != 41]
    (dead,) = read_all(bench.bootstrap, bench.dead)
    assert (dead.key, dead.value, dead.timestamp[1]) == (b"41", b"{broken", 1_700_000_000_000)
    assert dead.headers[:2] == [("trace", b"\x01"), ("trace", None)]
    assert dead.header("kpipe-source-topic") == bench.topic
    assert (dead.header("kpipe-source-partition"), dead.header("kpipe-source-offset")) == ("0", "41")
    assert dead.header("kpipe-fault-component") == "orders_kit:parse"
    assert dead.header("kpipe-fault-kind") == "segment"
    assert dead.header("kpipe-fault-exception") == "json.decoder.JSONDecodeError"
    assert "line 1 column 2" in dead.header("kpipe-fault-message")
    assert "orders_kit.py" in dead.header("kpipe-fault-stacktrace")
    assert dead.header("kpipe-run-key") == "run-1"


@both_deliveries
def test_segments_filter_multiply_and_open(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(
        broker.bootstrap_servers,
        delivery=delivery,
        segments=["orders_kit:only_even", "orders_kit:twice", "orders_kit:Opened"],
    )
    fill(bench.bootstrap, bench.topic, numbered(10))

    (progress,) = bench.work(bench.plan())

    assert (progress.counts.read, progress.counts.written, progress.counts.filtered) == (10, 10, 5)
    found = read_all(bench.bootstrap, bench.output)
    assert ids(found) == [0, 0, 2, 2, 4, 4, 6, 6, 8, 8]
    assert [each.key for each in found[:2]] == [b"first", b"second"]
    assert {each.header("opened-for") for each in found} == {"0"}


@both_deliveries
def test_a_record_too_large_for_the_producer_is_a_dead_letter(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, segments=["orders_kit:too_large"])
    fill(bench.bootstrap, bench.topic, numbered(30))

    (progress,) = bench.work(bench.plan())

    assert progress.complete
    assert (progress.counts.written, progress.counts.dead_lettered) == (27, 3)
    dead = read_all(bench.bootstrap, bench.dead)
    assert ids(dead) == [3, 13, 23]
    assert {each.header("kpipe-fault-kind") for each in dead} == {"destination"}


@both_deliveries
def test_of_a_record_that_cannot_be_written_whole_nothing_is_written(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, segments=["orders_kit:second_too_large"])
    fill(bench.bootstrap, bench.topic, numbered(10))

    (progress,) = bench.work(bench.plan())

    assert (progress.counts.read, progress.counts.written, progress.counts.dead_lettered) == (10, 9, 1)
    assert ids(read_all(bench.bootstrap, bench.dead)) == [5]
    written = ids(read_all(bench.bootstrap, bench.output))
    if delivery == "exactly_once":
        assert written == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    else:
        assert set(written) >= {0, 1, 2, 3, 4, 6, 7, 8, 9}


@both_deliveries
@pytest.mark.parametrize("on_fault", ["dead_letter", "skip"])
def test_many_records_of_a_chunk_that_cannot_be_written_whole(
    broker: SandboxBroker, delivery: Delivery, on_fault: str
) -> None:
    """Each of them takes a try of its own to be found, and none of these tries is in vain."""
    segments = ["orders_kit:every_third_second_too_large"]
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, segments=segments, on_fault=on_fault)
    fill(bench.bootstrap, bench.topic, numbered(30))

    (progress,) = bench.work(bench.plan())

    assert progress.complete, progress.reason
    counts, sound = progress.counts, [each for each in range(30) if each % 3]
    assert (counts.read, counts.written, counts.dead_lettered + counts.skipped) == (30, 20, 10)
    assert ids(read_all(bench.bootstrap, bench.dead)) == ([] if on_fault == "skip" else list(range(0, 30, 3)))
    written = ids(read_all(bench.bootstrap, bench.output))
    assert written == sound if delivery == "exactly_once" else set(written) >= set(sound)


@both_deliveries
def test_many_records_that_only_the_broker_refuses(broker: SandboxBroker, delivery: Delivery) -> None:
    """A compacted topic takes no record without a key."""
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=200)
    admin = AdminClient(bench.settings)
    admin.delete_topics([bench.output])[bench.output].result(30)
    create_topics(bench.bootstrap, bench.output, config={"cleanup.policy": "compact"})
    records = [replace(each, key=None if at % 4 == 0 else each.key) for at, each in enumerate(numbered(100))]
    fill(bench.bootstrap, bench.topic, records)

    (progress,) = bench.work(bench.plan())

    assert progress.complete, progress.reason
    assert (progress.counts.read, progress.counts.written, progress.counts.dead_lettered) == (100, 75, 25)
    assert ids(read_all(bench.bootstrap, bench.dead)) == list(range(0, 100, 4))
    written = ids(read_all(bench.bootstrap, bench.output))
    keyed = [each for each in range(100) if each % 4]
    assert written == keyed if delivery == "exactly_once" else set(written) == set(keyed)


@both_deliveries
def test_a_record_that_only_the_broker_refuses_is_a_dead_letter(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery)
    admin = AdminClient(bench.settings)
    admin.delete_topics([bench.output])[bench.output].result(30)
    create_topics(bench.bootstrap, bench.output, config={"max.message.bytes": "5000"})
    records = numbered(50)
    records[20] = Sent(b'{"id": 20, "pad": "' + b"x" * 8_000 + b'"}', b"20")
    fill(bench.bootstrap, bench.topic, records)

    (progress,) = bench.work(bench.plan())

    assert progress.complete, progress.reason
    assert (progress.counts.read, progress.counts.dead_lettered) == (50, 1)
    assert ids(read_all(bench.bootstrap, bench.dead)) == [20]
    written = ids(read_all(bench.bootstrap, bench.output))
    assert set(written) == set(range(50)) - {20}
    if delivery == "exactly_once":
        assert len(written) == 49


@both_deliveries
@pytest.mark.parametrize("segments", [[], ["orders_kit:untouched"]], ids=["copy", "segment"])
def test_no_record_is_at_fault_for_a_destination_that_is_gone(
    broker: SandboxBroker, delivery: Delivery, segments: list[str]
) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, segments=segments)
    fill(bench.bootstrap, bench.topic, numbered(20))
    plan, admin = bench.plan(), AdminClient(bench.settings)
    admin.delete_topics([bench.output])[bench.output].result(30)

    # A client waits for half a minute for a topic that may just have been made.
    (progress,) = bench.work(plan, **IMPATIENT)

    assert (progress.state, progress.next_offset) == ("stopped", 0)
    assert f"topic '{bench.output}' cannot be written to" in (progress.reason or "")
    assert read_all(bench.bootstrap, bench.dead) == []


@both_deliveries
def test_a_dead_letter_that_cannot_be_written_stops_the_partition_before_it(
    broker: SandboxBroker, delivery: Delivery
) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, segments=["orders_kit:parse"])
    records = numbered(20)
    # With its headers, the dead letter is over the producer's limit of 1,000,000 bytes.
    records[7] = Sent(b"x" * 999_500, b"7")
    fill(bench.bootstrap, bench.topic, records)

    (progress,) = bench.work(bench.plan())

    assert not progress.complete
    assert progress.next_offset == 7
    assert "dead letter cannot be written" in (progress.reason or "")
    assert ids(read_all(bench.bootstrap, bench.output)) == list(range(7))
    assert read_all(bench.bootstrap, bench.dead) == []
    assert committed(bench.bootstrap, f"{bench.pipeline.group}.kpipe", bench.topic, 1) == {0: 7}


@both_deliveries
def test_without_a_dead_letter_topic_the_first_fault_stops_the_partition(
    broker: SandboxBroker, delivery: Delivery
) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, segments=["orders_kit:parse"], dead_letter=None)
    records = numbered(20)
    records[12] = Sent(b"{broken", b"12")
    fill(bench.bootstrap, bench.topic, records)
    plan = bench.plan()

    (progress,) = bench.work(plan)

    assert (progress.next_offset, progress.counts.written) == (12, 12)
    assert "offset 12: segment orders_kit:parse: json.decoder.JSONDecodeError" in (progress.reason or "")
    assert ids(read_all(bench.bootstrap, bench.output)) == list(range(12))
    (again,) = bench.work(plan)
    assert again.next_offset == 12
    assert len(read_all(bench.bootstrap, bench.output)) == 12


@both_deliveries
def test_a_range_that_ends_in_markers_and_aborted_records_is_complete(
    broker: SandboxBroker, delivery: Delivery
) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery)
    fill_in_transactions(
        bench.bootstrap,
        bench.topic,
        [(numbered(5), True), (numbered(3, start=100), False), (numbered(5, start=5), True), (numbered(4), False)],
    )
    plan = bench.plan()
    assert plan.ranges[0].end == 5 + 1 + 3 + 1 + 5 + 1 + 4 + 1

    (progress,) = bench.work(plan)

    assert progress.complete
    assert progress.counts.read == 10
    assert ids(read_all(bench.bootstrap, bench.output)) == list(range(10))


def test_a_range_of_nothing_but_markers_is_complete(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill_in_transactions(bench.bootstrap, bench.topic, [(numbered(2), True), (numbered(3), False)])
    plan = bench.plan(start=Explicit({0: 2}))

    (progress,) = bench.work(plan)

    assert progress.complete
    assert (progress.next_offset, progress.counts.read) == (7, 0)


@both_deliveries
def test_a_range_that_ends_in_holes_is_complete_also_where_chunks_end_by_time(
    broker: SandboxBroker, delivery: Delivery
) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, segments=["orders_kit:slowly"], chunk_seconds=0.1)
    fill_in_transactions(bench.bootstrap, bench.topic, [(numbered(50), True), (numbered(3), False)])

    (progress,) = bench.work(bench.plan())

    assert (progress.complete, progress.next_offset, progress.counts.read) == (True, 55, 50)
    assert ids(read_all(bench.bootstrap, bench.output)) == list(range(50))


@both_deliveries
def test_an_attempt_goes_on_from_what_the_last_one_stored(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(95))
    plan = bench.plan()
    first = bench.worker(plan)
    first.open()
    for _ in range(4):
        first.run_chunk()
    first.close()

    (progress,) = bench.work(plan)

    assert progress.complete
    assert (progress.counts.read, progress.counts.written) == (95, 95)
    assert ids(read_all(bench.bootstrap, bench.output)) == list(range(95))


def test_a_newer_worker_fences_the_older_and_nothing_is_written_twice(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(50))
    plan = bench.plan()
    older = bench.worker(plan)
    older.open()
    older.run_chunk()

    (progress,) = bench.work(plan)
    older.run_chunks()
    older.close()

    assert progress.complete
    assert (older.assignment[0].progress.state, older.assignment[0].progress.reason) == (
        "revoked",
        "run run-1 took the partition over",
    )
    assert ids(read_all(bench.bootstrap, bench.output)) == list(range(50))


@both_deliveries
def test_offsets_below_the_log_start_are_a_loss_that_stops_the_partition(
    broker: SandboxBroker, delivery: Delivery
) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery)
    fill(bench.bootstrap, bench.topic, numbered(50))
    plan = bench.plan()
    cut_off(bench, 30)

    (progress,) = bench.work(plan)

    assert (progress.complete, progress.next_offset) == (False, 0)
    assert "records 0 to 29 have left the topic" in (progress.reason or "")
    assert read_all(bench.bootstrap, bench.output) == []


@both_deliveries
def test_a_loss_can_be_passed_over_and_is_counted(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, source={"on_data_loss": "skip"})
    fill(bench.bootstrap, bench.topic, numbered(50))
    plan = bench.plan()
    cut_off(bench, 30)

    (progress,) = bench.work(plan)

    assert progress.complete
    assert (progress.counts.lost, progress.counts.read) == (30, 20)
    assert ids(read_all(bench.bootstrap, bench.output)) == list(range(30, 50))


def test_a_start_above_the_end_of_the_log_stops_the_partition(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(50))
    plan = bench.plan(start=Explicit({0: 40}))
    admin = AdminClient(bench.settings)
    admin.delete_topics([bench.topic])[bench.topic].result(30)
    create_topics(bench.bootstrap, bench.topic)

    (progress,) = bench.work(plan)

    assert "was re-created while it was read" in (progress.reason or "")
    assert "start a new run" in (progress.reason or "")


@both_deliveries
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("no_such_module:parse", "No module named 'no_such_module'"),
        ("orders_kit:no_such_name", "has no attribute 'no_such_name'"),
    ],
)
def test_a_segment_that_cannot_be_imported_is_named(
    broker: SandboxBroker, delivery: Delivery, path: str, said: str
) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, segments=[path])
    fill(bench.bootstrap, bench.topic, numbered(5))

    (progress,) = bench.work(bench.plan())

    assert (progress.complete, progress.next_offset, progress.counts.read) == (False, 0, 0)
    assert path in (progress.reason or "")
    assert said in (progress.reason or "")
    assert "py_files" in (progress.reason or "")


@both_deliveries
def test_a_chunk_ends_by_time_where_segments_are_slow(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, segments=["orders_kit:slowly"], chunk_seconds=0.2)
    fill(bench.bootstrap, bench.topic, numbered(100))
    worker = bench.worker(bench.plan())
    worker.open()

    worker.run_chunk()
    after_first = worker.assignment[0].stored
    worker.close()

    assert 0 < after_first < 100
    assert committed(bench.bootstrap, f"{bench.pipeline.group}.kpipe", bench.topic, 1) == {0: after_first}


def test_the_public_group_stays_where_it_is(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(20))

    bench.work(bench.plan())

    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {}


def cut_off(bench: Bench, before: int) -> None:
    """What retention does: records below an offset leave the topic."""
    admin = AdminClient(bench.settings)
    (future,) = admin.delete_records([TopicPartition(bench.topic, 0, before)]).values()
    future.result(30)


def test_no_record_is_in_hand_once_its_chunk_is_stored(broker: SandboxBroker) -> None:
    """What ends the worker then is not blamed on any: it may be the client, which fetches ahead."""
    bench = Bench.make(broker.bootstrap_servers, segments=["orders_kit:parse"], chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(30))
    position = WorkerPosition()
    worker = bench.worker(bench.plan(), position=position)
    worker.open()
    worker.run_chunk()
    assert (worker.assignment[0].stored, position.at) == (10, None)
    worker.close()
