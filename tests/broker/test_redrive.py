"""Redrives on a real broker: where each dead letter goes, and that it goes there once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.contract.dead_letters.dead_letter import Coordinates
from airflow_provider_kpipe.contract.offsets.limits import Explicit
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.redrive.ledger import LedgerEntry, Redriven
from airflow_provider_kpipe.contract.redrive.redrive import RedriveTarget, ledger_topic_of
from airflow_provider_kpipe.exceptions import StalePlanError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.redriving.preview import preview
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from kpipe_engine.assignment.worker_position import At, WorkerPosition
from kpipe_engine.reading.chunk import Chunk
from kpipe_engine.redrive.ledger import Ledger
from tests.kit.pipelines import IMPATIENT, Bench
from tests.kit.redrives import dry_run, fixed, ids, letters, order, redrive, work, worker
from tests.kit.topics import Sent, committed, fill, numbered, read_all

ODD = [1, 3, 5, 7, 9]
TARGETS: tuple[RedriveTarget, ...] = ("source", "output")
SHAPES: list[dict[str, Any]] = [
    {},
    {"format": "envelope"},
    {"dialect": "connect"},
    {"dialect": "spring"},
    {"dialect": "streams", "format": "envelope"},
]


def with_dead_letters(broker: SandboxBroker, count: int = 10, partitions: int = 1, **spec: Any) -> Bench:
    """Records with odd ids are dead letters."""
    bench = Bench.make(broker.bootstrap_servers, partitions, **{"segments": ["faulty_kit:odd_ones_fail"], **spec})
    fill(bench.bootstrap, bench.topic, numbered(count, partitions))
    plan = bench.plan()
    bench.work(plan)
    bench.checkpoint(plan)
    return bench


def entries(bench: Bench) -> list[tuple[bytes, str]]:
    found = read_all(bench.bootstrap, ledger_topic_of(bench.pipeline))
    return [(each.key or b"", LedgerEntry.from_json(json.loads(each.value or b"")).outcome) for each in found]


@pytest.mark.parametrize(
    ("shape", "segments"),
    [
        *((shape, ["orders_kit:Opened"]) for shape in SHAPES),
        ({}, []),
        ({"format": "envelope"}, ["batch_kit:untouched"]),
    ],
    ids=repr,
)
def test_through_the_segments_to_the_output(broker: SandboxBroker, shape: dict[str, Any], segments: list[str]) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["faulty_kit:odd_ones_fail"], dead_letter=shape)
    records = [
        replace(each, headers=[("trace", b"\xff\x00"), ("trace", None)], timestamp=1_700_000_000_000 + at)
        for at, each in enumerate(numbered(10))
    ]
    fill(bench.bootstrap, bench.topic, records)
    bench.work(bench.plan())

    counts = redrive(fixed(bench, *segments))

    assert (counts.read, counts.written, counts.named) == (5, 5, {"kpipe:redriven": 5})
    assert ids(bench, bench.output) == list(range(10))
    redriven = [each for each in read_all(bench.bootstrap, bench.output) if json.loads(each.value or b"")["id"] in ODD]
    for each in redriven:
        sent = records[json.loads(each.value or b"")["id"]]
        assert (each.key, each.value, each.timestamp[1]) == (sent.key, sent.value, sent.timestamp)
        assert [header for header in each.headers if header[0] != "opened-for"] == sent.headers
    assert len(entries(bench)) == 5


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_back_to_the_source_topic_and_through_the_pipelines_next_run(
    broker: SandboxBroker, shape: dict[str, Any]
) -> None:
    bench = with_dead_letters(broker, 20, partitions=4, dead_letter=shape)

    counts = redrive(bench, target="source")

    assert (counts.read, counts.written) == (10, 10)
    back = read_all(bench.bootstrap, bench.topic)
    assert sorted(json.loads(each.value or b"")["id"] for each in back) == sorted([*range(20), *range(1, 20, 2)])
    # Each is in the partition where it was.
    assert all(json.loads(each.value or b"")["id"] % 4 == each.partition for each in back)
    again = fixed(bench)
    plan = again.plan("run-2")
    again.work(plan)
    assert ids(bench, bench.output) == list(range(20))


def test_a_record_that_faults_again_counts_its_attempts_and_is_parked_in_the_end(broker: SandboxBroker) -> None:
    bench = with_dead_letters(broker)
    parking = f"{bench.topic}.parked"
    create_topics(bench.bootstrap, parking)

    for target, attempt in zip(("source", "output"), (2, 3), strict=True):
        counts = redrive(bench, f"to-{target}", target=target, max_attempts=3, parking=parking)
        assert counts.named["kpipe:redriven"] == 5
        if target == "source":
            bench.work(bench.plan(f"run-{attempt}"))
        newest = letters(bench)[-5:]
        assert [each.attempt for each in newest] == [attempt] * 5
        assert [each.first and each.first.offset for each in newest] == ODD
        assert {each.first and each.first.exception_class for each in newest} == {"ValueError"}
    counts = redrive(bench, "third", max_attempts=3, parking=parking)

    assert counts.named == {"kpipe:already_redriven": 10, "kpipe:parked": 5}
    assert (counts.read, counts.filtered, counts.written, counts.dead_lettered) == (15, 15, 0, 0)
    parked = read_all(bench.bootstrap, parking)
    asleep = read_all(bench.bootstrap, bench.dead)[-5:]
    assert [(each.key, each.value, each.headers, each.timestamp) for each in parked] == [
        (each.key, each.value, each.headers, each.timestamp) for each in asleep
    ]
    assert redrive(bench, "fourth", max_attempts=3, parking=parking).named == {"kpipe:already_redriven": 15}
    assert len(read_all(bench.bootstrap, parking)) == 5
    assert sorted(outcome for _, outcome in entries(bench)) == ["parked"] * 5 + ["redriven"] * 10


def test_without_a_parking_topic_it_stays_and_may_be_redriven_with_a_higher_cap(broker: SandboxBroker) -> None:
    bench = with_dead_letters(broker)
    assert redrive(bench, max_attempts=1).named == {"kpipe:exhausted": 5}
    assert entries(bench) == []
    assert redrive(fixed(bench), "again", max_attempts=2).named == {"kpipe:redriven": 5}


@pytest.mark.parametrize("target", TARGETS)
def test_pressed_twice_nothing_goes_back_twice(broker: SandboxBroker, target: RedriveTarget) -> None:
    bench = fixed(with_dead_letters(broker, 40, partitions=2))
    before = len(read_all(bench.bootstrap, bench.pipeline.source.topic if target == "source" else bench.output))

    assert redrive(bench, "first", target=target).named == {"kpipe:redriven": 20}
    second = redrive(bench, "second", target=target)

    assert second.named == {"kpipe:already_redriven": 20}
    after = read_all(bench.bootstrap, bench.pipeline.source.topic if target == "source" else bench.output)
    assert len(after) == before + 20
    # The same run once more, as after a clear, does nothing at all.
    assert redrive(bench, "second", target=target).named == {"kpipe:already_redriven": 20}


def test_a_letter_whose_entry_is_taken_back_goes_back_once_more(broker: SandboxBroker) -> None:
    bench = fixed(with_dead_letters(broker, partitions=3))
    assert redrive(bench).named == {"kpipe:redriven": 5}
    ledger = ledger_topic_of(bench.pipeline)
    entry = max(read_all(bench.bootstrap, ledger), key=lambda each: each.partition)
    assert entry.partition > 0
    fill(bench.bootstrap, ledger, [Sent(None, entry.key, entry.partition)])

    assert redrive(bench, "again").named == {"kpipe:redriven": 1, "kpipe:already_redriven": 4}
    assert redrive(bench, "and again").named == {"kpipe:already_redriven": 5}
    assert len(ids(bench, bench.output)) == 11


def test_a_letter_of_a_mapper_goes_back_as_the_mapper_wrote_it(broker: SandboxBroker) -> None:
    bench = with_dead_letters(broker, dead_letter={"mapper": "dead_letter_kit:as_ticket"})
    tickets = [each.value for each in read_all(bench.bootstrap, bench.dead)]
    assert redrive(bench, target="source").named == {"kpipe:redriven": 5}
    back = read_all(bench.bootstrap, bench.topic)[10:]
    assert [each.value for each in back] == tickets
    assert all(("ticket", b"open") in each.headers for each in back)


def test_redrives_that_choose_the_same_letter_in_different_ways_take_it_once(broker: SandboxBroker) -> None:
    bench = fixed(with_dead_letters(broker))
    assert redrive(bench, "one", record=Coordinates(bench.topic, 0, 5)).named == {
        "kpipe:not_selected": 4,
        "kpipe:redriven": 1,
    }
    assert redrive(bench, "some", exception_class="ValueError").named == {
        "kpipe:already_redriven": 1,
        "kpipe:redriven": 4,
    }
    assert redrive(bench, "to the source", target="source").named == {"kpipe:already_redriven": 5}
    assert ids(bench, bench.output) == list(range(10))


def test_of_two_that_overlap_the_older_gives_way_and_nothing_goes_back_twice(broker: SandboxBroker) -> None:
    bench = fixed(with_dead_letters(broker, 100))
    bench = replace(bench, pipeline=replace(bench.pipeline, chunk_records=10))
    first, second = order(bench, "first"), order(bench, "second")
    older = worker(bench, first)
    older.open()
    older.run_chunk()
    older.run_chunk()
    newer = worker(bench, second)
    newer.open()
    newer.run_chunk()
    newer.run_chunk()
    newer.run_chunk()
    assert newer.assignment.current.counts.named == {"kpipe:already_redriven": 20, "kpipe:redriven": 10}

    older.run_chunks()
    older.close()
    newer.run_chunks()
    newer.close()

    assert newer.assignment.current.counts.named == {"kpipe:already_redriven": 20, "kpipe:redriven": 30}
    assert ids(bench, bench.output) == list(range(100))


def test_a_new_producer_sees_the_work_of_another_redrive(broker: SandboxBroker) -> None:
    bench = fixed(with_dead_letters(broker, 100))
    bench = replace(bench, pipeline=replace(bench.pipeline, chunk_records=10))
    held = worker(bench, order(bench, "held"))
    held.open()
    held.run_chunk()
    assert redrive(bench, "quick").named == {"kpipe:already_redriven": 10, "kpipe:redriven": 40}

    # As after a chunk that failed, but without a look at whose partition it is by now.
    held.writer.renew(isolates=False)
    held.run_chunks()
    held.close()

    assert held.assignment.current.counts.named == {"kpipe:redriven": 10, "kpipe:already_redriven": 40}
    assert ids(bench, bench.output) == list(range(100))


def test_a_retry_goes_on_where_the_last_try_stored(broker: SandboxBroker) -> None:
    bench = fixed(with_dead_letters(broker, 100))
    bench = replace(bench, pipeline=replace(bench.pipeline, chunk_records=10))
    made = order(bench)
    cut = worker(bench, made)
    cut.open()
    cut.run_chunk()
    cut.writer.begin()
    # A chunk that comes to nothing: its entries in the ledger as well.
    cut.filler.fill(Chunk(10, 60.0, cut.stop_signal), cut.assignment)
    cut.close()

    (progress,) = work(bench, made)

    assert progress.counts.named == {"kpipe:redriven": 50}
    assert ids(bench, bench.output) == list(range(100))


def test_a_segments_filter_and_its_several_outputs_are_one_letter_each(broker: SandboxBroker) -> None:
    bench = with_dead_letters(broker)
    assert redrive(fixed(bench, "orders_kit:only_even")).filtered == 5
    assert redrive(fixed(bench, "orders_kit:twice"), "again").named == {"kpipe:already_redriven": 5}
    other = with_dead_letters(broker)
    counts = redrive(fixed(other, "orders_kit:twice"))
    assert (counts.written, counts.named["kpipe:redriven"]) == (10, 5)


@pytest.mark.parametrize(
    "segments", [["faulty_kit:CountsAsParked"], ["faulty_kit:CountsAsParked", "batch_kit:untouched"]]
)
def test_counters_of_segments_never_mix_with_outcomes(broker: SandboxBroker, segments: list[str]) -> None:
    bench = with_dead_letters(broker)
    counts = redrive(fixed(bench, *segments))
    assert counts.named == {"kpipe:redriven": 5, "parked": 5}


@pytest.mark.parametrize("dialect", ["kpipe", "connect", "spring", "streams"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_header_that_dead_letters_use_comes_back_with_its_record(
    broker: SandboxBroker, target: RedriveTarget, dialect: str
) -> None:
    own: list[tuple[str, bytes | None]] = [("kafka_dlt-exception-message", b"mine"), ("a", b"1")]
    bench = Bench.make(
        broker.bootstrap_servers, segments=["faulty_kit:odd_ones_fail"], dead_letter={"dialect": dialect}
    )
    fill(bench.bootstrap, bench.topic, [Sent(b'{"id": 1}', b"1", headers=own)])
    bench.work(bench.plan())
    redrive(fixed(bench), target=target)

    (*_, back) = read_all(bench.bootstrap, bench.topic if target == "source" else bench.output)

    assert back.headers[:2] == own
    assert target == "source" or len(back.headers) == 2
    if target == "source":
        # There it fails once more.
        bench.work(bench.plan(run_key="run-2"))
        assert [(each.attempt, list(each.headers)) for each in letters(bench)] == [(1, own), (2, own)]


def test_retries_are_kept(broker: SandboxBroker) -> None:
    bench = fixed(with_dead_letters(broker, 4), "faulty_kit:FailsTwice")
    retry = type(bench.pipeline.retry).fixed(3, 0.001)
    counts = redrive(replace(bench, pipeline=replace(bench.pipeline, retry=retry)))
    assert (counts.written, counts.retried, counts.dead_lettered) == (2, 4, 0)


def test_an_output_that_is_too_large_makes_a_dead_letter_of_it_again(broker: SandboxBroker) -> None:
    bench = with_dead_letters(broker)
    for run_key, segment in (("one by one", "orders_kit:too_large"), ("batch", "batch_kit:too_large")):
        counts = redrive(fixed(bench, segment), run_key)
        assert counts.dead_lettered == 1
        (newest,) = letters(bench)[-1:]
        assert newest.fault.kind == "destination"
        assert (newest.first and newest.first.offset) == 3
    assert letters(bench)[-1].attempt == 3


def test_a_message_that_is_no_dead_letter_stays_where_it_is(broker: SandboxBroker) -> None:
    bench = fixed(with_dead_letters(broker))
    fill(bench.bootstrap, bench.dead, [Sent(b'{"id": 77}', b"77")])
    assert redrive(bench).named == {"kpipe:redriven": 5, "kpipe:unreadable": 1}
    assert 77 not in ids(bench, bench.output)


def test_a_range_of_the_dead_letter_topic(broker: SandboxBroker) -> None:
    bench = fixed(with_dead_letters(broker))
    counts = redrive(bench, start=Explicit({0: 1}), end=Explicit({0: 3}))
    assert counts.named == {"kpipe:redriven": 2}
    assert ids(bench, bench.output) == sorted([0, 2, 4, 6, 8, 3, 5])


def test_nobodys_group_is_moved(broker: SandboxBroker) -> None:
    bench = fixed(with_dead_letters(broker))
    before = committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1)
    made = order(bench)
    work(bench, made)
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == before
    assert committed(bench.bootstrap, made.plan.group, bench.dead, 1) == {}
    end = made.plan.ranges[0].end
    assert committed(bench.bootstrap, made.plan.progress_group(), bench.dead, 1) == {0: end}


def test_a_parking_topic_that_refuses_a_letter_stops_in_front_of_it_and_loses_nothing(broker: SandboxBroker) -> None:
    bench = fixed(with_dead_letters(broker))
    small = f"{bench.topic}.small"
    create_topics(bench.bootstrap, small, config={"max.message.bytes": "100"})

    (progress,) = work(bench, order(bench, max_attempts=1, parking=small))

    assert (progress.next_offset, progress.complete) == (0, False)
    assert "offset 0: what its redrive has to write was rejected" in (progress.reason or "")
    assert small in (progress.reason or "")
    assert entries(bench) == []
    assert redrive(bench, "again").named == {"kpipe:redriven": 5}


def test_letters_behind_a_stop_are_not_entered_and_go_back_later(broker: SandboxBroker) -> None:
    bench = fixed(with_dead_letters(broker), "faulty_kit:stops_at_five")

    (progress,) = work(bench, order(bench))

    assert (progress.state, progress.next_offset) == ("stopped", 2)
    assert progress.counts.named == {"kpipe:redriven": 2}
    assert [key.rpartition(b"/")[2] for key, _ in entries(bench)] == [b"0", b"1"]
    assert redrive(fixed(bench), "again").named == {"kpipe:already_redriven": 2, "kpipe:redriven": 3}
    assert ids(bench, bench.output) == list(range(10))


@pytest.mark.parametrize("target", TARGETS)
def test_no_letter_is_at_fault_for_a_target_that_is_gone(broker: SandboxBroker, target: RedriveTarget) -> None:
    bench = fixed(with_dead_letters(broker))
    made, admin = order(bench, target=target), AdminClient(bench.settings)
    gone = bench.topic if target == "source" else bench.output
    admin.delete_topics([gone])[gone].result(30)

    (progress,) = worker(bench, made, **IMPATIENT).run()

    assert (progress.state, progress.next_offset) == ("stopped", 0)
    assert f"topic '{gone}' cannot be written to" in (progress.reason or "")
    assert len(letters(bench)) == 5
    assert entries(bench) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"topic_id": "another"}, "was re-created since it was planned"),
        ({"ranges": (PartitionRange(0, 0, 900, None),)}, "ends at 900 in partition 0 of .*, and the log at"),
    ],
)
def test_a_dry_run_of_what_is_no_longer_there_says_so_at_once(
    broker: SandboxBroker, changes: dict[str, Any], said: str
) -> None:
    bench = with_dead_letters(broker)
    made = order(bench, dry_run=True)
    with pytest.raises(StalePlanError, match=said):
        preview(bench.settings, replace(made, plan=replace(made.plan, **changes)))


def test_a_dry_run_counts_what_a_run_would_do_and_writes_nothing(broker: SandboxBroker) -> None:
    bench = fixed(with_dead_letters(broker, 40, partitions=2))
    result = dry_run(bench, exception_class="ValueError")
    assert result.outcomes["redriven"] == 20
    assert result.exception_classes == {"ValueError": 20}
    assert result.pipelines == {bench.topic: 20}
    assert len(result.samples) == 10
    assert result.samples[0].record.startswith(f"{bench.topic}-")
    assert (result.samples[0].message, result.samples[0].attempt) == ("odd", 1)
    with Positions(bench.settings) as positions, pytest.raises(Exception, match="is not on the cluster"):
        positions.topic(ledger_topic_of(bench.pipeline))

    redrive(bench, start=Explicit({0: 0}), end=Explicit({0: 1}))
    after = dry_run(bench)
    assert (after.outcomes["redriven"], after.outcomes["already_redriven"]) == (19, 1)
    assert dry_run(bench, pipeline="returns").outcomes["not_selected"] == 20


def test_the_ledger_is_read_while_no_letter_is_in_hand(broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = fixed(with_dead_letters(broker))
    position = WorkerPosition()
    at_work = worker(bench, order(bench), position=position)
    read = Ledger._redriven
    in_hand: list[At | None] = []

    def watched(ledger: Ledger) -> Redriven:
        in_hand.append(position.at)
        return read(ledger)

    monkeypatch.setattr(Ledger, "_redriven", watched)
    at_work.run()
    assert in_hand == [None]
