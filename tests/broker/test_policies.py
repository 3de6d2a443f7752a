"""Policy by kind of fault by delivery: which offset is stored, what is written, what is a dead letter."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe import KafkaDeadLetter, PartitionScaling
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.pipeline.policies import RetryPolicy
from airflow_provider_kpipe.contract.pipeline.scaling import ExecutionMode
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from tests.kit.pipelines import Bench
from tests.kit.strange_headers import write_header_name
from tests.kit.topics import Sent, committed, fill, numbered, read_all

DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")
both_deliveries = pytest.mark.parametrize("delivery", DELIVERIES)

# What is wrong with the sixth record, by the kind of its fault.
FAULTS = {
    "segment": "faulty_kit:fails_at_five",
    "destination, too large": "faulty_kit:every_tenth_too_large",
    "destination, headers": "faulty_kit:nameless_headers_at_five",
    "destination, second output": "orders_kit:second_too_large",
    "source": "orders_kit:untouched",
    "dead_letter": "faulty_kit:fails_at_five",
}
# Of ten records the sixth, with id 5 at offset 5, cannot pass.
TABLE = {
    # policy: (stored offset, ids written, ids of dead letters, skipped, complete)
    "dead_letter": (10, [0, 1, 2, 3, 4, 6, 7, 8, 9], [5], 0, True),
    "skip": (10, [0, 1, 2, 3, 4, 6, 7, 8, 9], [], 1, True),
    "stop_partition": (5, [0, 1, 2, 3, 4], [], 0, False),
    "stop_pipeline": (5, [0, 1, 2, 3, 4], [], 0, False),
}
# No dead letter can hold what cannot be read, and one that cannot be written holds nothing: nothing is passed over.
NO_LETTER = {"source", "dead_letter"}
FOUND_BY_A_REDO = {"destination, second output", "dead_letter"}


def ids(bench: Bench, topic: str) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, topic)]


@both_deliveries
@pytest.mark.parametrize(
    ("policy", "fault"), list(itertools.product(TABLE, FAULTS)), ids=lambda each: each.replace(", ", "-")
)
def test_a_record_that_cannot_pass_follows_its_policy(
    broker: SandboxBroker, policy: str, fault: str, delivery: Delivery
) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, segments=[FAULTS[fault]], on_fault=policy)
    if fault == "dead_letter":
        create_topics(bench.bootstrap, f"{bench.dead}.small", config={"max.message.bytes": "100"})
        small = replace(bench.pipeline, dead_letter=KafkaDeadLetter(f"{bench.dead}.small"))
        bench = replace(bench, pipeline=small)
    if fault == "source":
        fill(bench.bootstrap, bench.topic, numbered(5))
        write_header_name(bench.bootstrap, bench.topic, b'{"id": 5}', b"\xff\xfe")
        fill(bench.bootstrap, bench.topic, numbered(4, start=6))
    else:
        fill(bench.bootstrap, bench.topic, numbered(10))
    without_letter = policy == "dead_letter" and fault in NO_LETTER
    stored, written, dead, skipped, complete = TABLE["stop_partition" if without_letter else policy]

    (progress,) = bench.work(bench.plan())

    assert (progress.complete, progress.next_offset, progress.counts.skipped) == (complete, stored, skipped)
    assert committed(bench.bootstrap, f"{bench.pipeline.group}.kpipe", bench.topic, 1) == {0: stored}
    if fault in FOUND_BY_A_REDO and delivery == "at_least_once":
        # What was written before the chunk was redone stays there.
        assert set(ids(bench, bench.output)) >= set(written)
    else:
        assert ids(bench, bench.output) == written
    # A dead letter of the destination kind holds the record as it was read, not as it could not be written.
    assert ids(bench, bench.dead) == dead
    if not complete:
        assert "offset 5" in (progress.reason or "")


@both_deliveries
@pytest.mark.parametrize("chooser", ["skip_odd_stop_at_nine", "Rules.skip_odd_stop_at_nine"])
def test_a_function_of_the_user_chooses_for_each_fault(broker: SandboxBroker, delivery: Delivery, chooser: str) -> None:
    bench = Bench.make(
        broker.bootstrap_servers,
        delivery=delivery,
        segments=["faulty_kit:odd_ones_fail"],
        on_fault=f"faulty_kit:{chooser}",
    )
    fill(bench.bootstrap, bench.topic, numbered(20))

    (progress,) = bench.work(bench.plan())

    assert (progress.next_offset, progress.counts.skipped) == (9, 4)
    assert ids(bench, bench.output) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("at_once", [1, 4], ids=["in order", "relaxed"])
def test_a_record_that_stops_its_partition_is_counted_where_it_passes(broker: SandboxBroker, at_once: int) -> None:
    mode: ExecutionMode = "relax_ordering_within_partition" if at_once > 1 else "preserve_partition_order"
    bench = Bench.make(
        broker.bootstrap_servers,
        segments=["faulty_kit:CountsAndFailsAtFive"],
        on_fault="stop_partition",
        scaling=PartitionScaling(mode, max_in_flight_per_partition=at_once),
    )
    fill(bench.bootstrap, bench.topic, numbered(10))
    plan = bench.plan()
    for _attempt in range(2):
        (progress,) = bench.work(plan)
        assert (progress.next_offset, progress.counts.named) == (5, {"seen": 5})


def test_a_function_that_fails_itself_stops_the_partition_and_is_named(broker: SandboxBroker) -> None:
    bench = Bench.make(
        broker.bootstrap_servers, segments=["faulty_kit:odd_ones_fail"], on_fault="faulty_kit:cannot_choose"
    )
    fill(bench.bootstrap, bench.topic, numbered(4))
    (progress,) = bench.work(bench.plan())
    assert progress.next_offset == 1
    assert "on_fault='faulty_kit:cannot_choose' itself failed over it (RuntimeError: no idea)" in str(progress.reason)


@both_deliveries
@pytest.mark.parametrize(
    ("retry", "written", "retried"),
    [
        (RetryPolicy.fixed(3, 0.001), 6, 12),
        # The wait is longer than a chunk: it is slept through between chunks.
        (RetryPolicy.exponential(3, delay_seconds=0.3, jitter=0), 2, 4),
        (RetryPolicy.fixed(2, 0.001), 0, 6),
        (RetryPolicy.fixed(3, 0.001, retry_on=["ValueError"]), 0, 0),
    ],
    ids=["passes at the third try", "waits between chunks", "has too few tries", "is not worth it"],
)
def test_a_record_is_tried_again(
    broker: SandboxBroker, delivery: Delivery, retry: RetryPolicy, written: int, retried: int
) -> None:
    bench = Bench.make(
        broker.bootstrap_servers,
        delivery=delivery,
        segments=["faulty_kit:FailsTwice"],
        retry=retry,
        chunk_seconds=0.2,
    )
    count = 2 if retry.delay_seconds > 0.1 else 6
    fill(bench.bootstrap, bench.topic, numbered(count))

    (progress,) = bench.work(bench.plan())

    assert progress.complete, progress.reason
    assert (progress.counts.read, progress.counts.written, progress.counts.retried) == (count, written, retried)
    assert ids(bench, bench.output) == list(range(written))
    dead = read_all(bench.bootstrap, bench.dead)
    assert len(dead) == count - written
    for letter in dead:
        assert letter.header("kpipe-fault-attempts") == str(min(retry.max_attempts, 1 + retried))


@pytest.mark.parametrize(
    ("segment", "at_once"),
    [("SpoilsItsFirstTry", 1), ("SpoilsItsFirstTry", 4), ("SpoilsItsFirstTryAwaited", 4)],
    ids=["in order", "in threads", "awaited"],
)
def test_every_try_begins_with_the_record_as_it_was_read(broker: SandboxBroker, segment: str, at_once: int) -> None:
    mode: ExecutionMode = "relax_ordering_within_partition" if at_once > 1 else "preserve_partition_order"
    bench = Bench.make(
        broker.bootstrap_servers,
        segments=[f"faulty_kit:{segment}"],
        retry=RetryPolicy.fixed(2, 0.001),
        scaling=PartitionScaling(mode, max_in_flight_per_partition=at_once),
    )
    headers: list[tuple[str, bytes | None]] = [("a", b"1"), ("a", None)]
    sent = [Sent(b"value %d" % each, b"key", 0, headers, 1_700_000_000_000) for each in range(9)]
    fill(bench.bootstrap, bench.topic, sent)

    (progress,) = bench.work(bench.plan())

    assert (progress.counts.written, progress.counts.retried) == (9, 9)
    found = read_all(bench.bootstrap, bench.output)
    assert sorted(each.value or b"" for each in found) == [each.value for each in sent]
    for each in found:
        assert (each.key, each.headers, each.timestamp[1]) == (b"key", headers, 1_700_000_000_000)


@both_deliveries
def test_too_many_dead_letters_stop_the_pipeline_and_what_is_stored_stays(
    broker: SandboxBroker, delivery: Delivery
) -> None:
    bench = Bench.make(
        broker.bootstrap_servers,
        partitions=2,
        delivery=delivery,
        segments=["faulty_kit:odd_ones_fail"],
        max_dead_letters=3,
    )
    # Partition 0 has the even ids, partition 1 the odd ones.
    fill(bench.bootstrap, bench.topic, numbered(40, partitions=2))
    plan = bench.plan()

    flooded, other = bench.work(plan, 1, 0)

    assert (flooded.next_offset, flooded.counts.dead_lettered) == (0, 0)
    assert "more than max_dead_letters=3 dead letters in this run" in (flooded.reason or "")
    # Without a transaction, what has been sent cannot be taken back.
    assert len(read_all(bench.bootstrap, bench.dead)) <= (0 if delivery == "exactly_once" else 3)
    assert (other.next_offset, other.complete) == (0, False)
    assert "partition 1 stopped the pipeline" in (other.reason or "")
    # The next attempt at the run is not held back by what stopped this one.
    (again,) = bench.work(plan, 0)
    assert again.complete


def test_the_budget_counts_the_dead_letters_of_all_partitions(broker: SandboxBroker) -> None:
    bench = Bench.make(
        broker.bootstrap_servers, partitions=2, segments=["orders_kit:parse"], max_dead_letters=5, chunk_records=1
    )
    broken = [type(each)(b"{broken", each.key, each.partition) for each in numbered(8, partitions=2)]
    fill(bench.bootstrap, bench.topic, broken)
    plan = bench.plan()
    first, second = bench.work(plan, 0, 1)
    assert (first.counts.dead_lettered, first.complete) == (4, True)
    assert (second.counts.dead_lettered, second.complete) == (1, False)


def test_the_budget_counts_the_partitions_that_share_a_writer(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2, segments=["orders_kit:parse"], max_dead_letters=5)
    fill(bench.bootstrap, bench.topic, [Sent(b"{broken", partition=number % 2) for number in range(8)])
    first, second = bench.worker(bench.plan(), 0, 1).run()
    assert (first.counts.dead_lettered, second.counts.dead_lettered) == (0, 0)
    assert "more than max_dead_letters=5" in (first.reason or "")
    assert second.reason == first.reason
    assert read_all(bench.bootstrap, bench.dead) == []


@both_deliveries
@pytest.mark.parametrize("records", [400, 6_000], ids=["at the end of a chunk", "in the midst of it"])
@pytest.mark.parametrize("policy", ["dead_letter", "skip"])
def test_a_run_in_which_everything_faults_stops_and_keeps_nothing(
    broker: SandboxBroker, policy: str, records: int, delivery: Delivery
) -> None:
    bench = Bench.make(
        broker.bootstrap_servers, partitions=2, delivery=delivery, segments=["faulty_kit:fails"], on_fault=policy
    )
    fill(bench.bootstrap, bench.topic, numbered(records, partitions=2))
    plan = bench.plan()

    first, other = bench.work(plan, 0, 1)

    assert (first.state, first.next_offset, first.counts) == ("stopped", 0, Counts())
    assert "records faulted, more than max_dead_letter_ratio=0.5 of them" in (first.reason or "")
    assert (other.state, other.next_offset) == ("stopped", 0)
    assert "partition 0 stopped the pipeline" in (other.reason or "")
    # Without a transaction, what has been sent cannot be taken back.
    assert len(read_all(bench.bootstrap, bench.dead)) <= (0 if delivery == "exactly_once" else 2_500)
    assert not bench.checkpoint(plan).complete
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 2) == {}


def test_chunks_before_the_one_that_broke_the_budget_stay(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["faulty_kit:fails_from_hundred"], chunk_records=50)
    fill(bench.bootstrap, bench.topic, numbered(400))
    (progress,) = bench.work(bench.plan())
    assert (progress.next_offset, progress.counts) == (200, Counts(read=200, written=100, dead_lettered=100))
    assert "150 of 250 records faulted" in (progress.reason or "")
    assert ids(bench, bench.dead) == list(range(100, 200))


@pytest.mark.parametrize(
    ("segment", "spec", "records"),
    [
        ("faulty_kit:odd_ones_fail", {}, 400),
        ("faulty_kit:fails", {}, 99),
        ("faulty_kit:fails", {"max_dead_letter_ratio": None}, 400),
        ("orders_kit:drop", {}, 400),
    ],
    ids=["just half of them fault", "too few to tell", "no limit", "all are filtered"],
)
def test_a_run_within_its_budget_comes_to_its_end(
    broker: SandboxBroker, segment: str, spec: dict[str, Any], records: int
) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=[segment], **spec)
    fill(bench.bootstrap, bench.topic, numbered(records))
    (progress,) = bench.work(bench.plan())
    assert (progress.complete, progress.counts.read) == (True, records)


@pytest.mark.parametrize("sizes", [(60, 60), (300, 300)], ids=["small partitions", "large partitions"])
def test_the_share_is_that_of_the_whole_run(broker: SandboxBroker, sizes: tuple[int, int]) -> None:
    """One partition of two is broken: not more than half; but all of both is, however small each may be."""
    passes = Bench.make(broker.bootstrap_servers, partitions=2, segments=["orders_kit:parse"])
    fill(passes.bootstrap, passes.topic, [Sent(b'{"id": 1}', partition=0) for _ in range(sizes[0])])
    fill(passes.bootstrap, passes.topic, [Sent(b"{broken", partition=1) for _ in range(sizes[1])])
    assert all(each.complete for each in passes.work(passes.plan(), 0, 1))

    stops = Bench.make(broker.bootstrap_servers, partitions=2, segments=["orders_kit:parse"])
    fill(stops.bootstrap, stops.topic, [Sent(b"{broken", partition=at) for at in (0, 1) for _ in range(sizes[at])])
    assert not all(each.complete for each in stops.work(stops.plan(), 0, 1))


def test_a_ratio_of_dead_letters_stops_the_pipeline(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["faulty_kit:odd_ones_fail"], max_dead_letter_ratio=0.2)
    fill(bench.bootstrap, bench.topic, numbered(400))
    (progress,) = bench.work(bench.plan())
    assert (progress.complete, progress.next_offset) == (False, 0)
    assert "more than max_dead_letter_ratio=0.2" in (progress.reason or "")
