"""A run that one version of kpipe has begun and another goes on with."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import telling_kit
from confluent_kafka import Producer, TopicPartition

from airflow_provider_kpipe.contract.dead_letters.envelope import Envelope
from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.kafka_names import details_group_of, progress_group_of
from airflow_provider_kpipe.contract.offsets.limits import Explicit
from airflow_provider_kpipe.contract.offsets.metadata import LEAST_METADATA_BYTES, as_text
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive.redrive import Selection
from airflow_provider_kpipe.redriving.selection import check_selection
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.redrives import dry_run, fixed, order, redrive, work
from tests.kit.topics import Sent, committed, fill, held, hold, numbered, read_all

DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")
both_deliveries = pytest.mark.parametrize("delivery", DELIVERIES)
# Of a version before; what a worker needs to go on has no default.
LATER_FIELDS = ("reason", "stops_run", "ended", "took_over", "inherited", "pieces", "unsettled", "done", "seconds")


def previous(document: dict[str, Any]) -> dict[str, Any]:
    """As a version before would have written it."""
    kept = {name: value for name, value in document.items() if name not in LATER_FIELDS}
    counts = {name: value for name, value in document["counts"].items() if name in ("read", "written")}
    return {**kept, "kpipe": "StoredProgress 0.0.9", "counts": counts}


def following(document: dict[str, Any]) -> dict[str, Any]:
    """As a version behind would have written it."""
    counts = {**document["counts"], "weighed": 7}
    return {**document, "kpipe": "StoredProgress 9.8.0", "counts": counts, "weather": {"fair": True}, "tides": [1, 2]}


def unreadable(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "kpipe": "StoredProgress 9.8.0", "schema_version": document["schema_version"] + 1}


def rewrite(
    bench: Bench, change: Callable[[dict[str, Any]], dict[str, Any]], partition: int = 0, group: str | None = None
) -> str:
    """What is stored for a partition is as another version would have stored it."""
    group = group or progress_group_of(bench.pipeline.group)
    position = held(bench.bootstrap, group, bench.topic, partition)
    written = as_text(change(json.loads(position.metadata or "")))
    hold(bench.bootstrap, group, TopicPartition(bench.topic, partition, position.offset, written))
    return written


def ids(bench: Bench) -> list[int]:
    return sorted(json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output))


@both_deliveries
@pytest.mark.parametrize("change", [previous, following])
def test_a_run_that_another_version_began_goes_on_from_what_it_stored(
    broker: SandboxBroker, delivery: Delivery, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(60))
    plan = bench.plan()
    first = bench.worker(plan)
    first.open()
    first.run_chunk()
    first.run_chunk()
    first.close()
    rewrite(bench, change)

    (progress,) = bench.work(plan)
    bench.checkpoint(plan)

    assert progress.complete
    assert (progress.counts.read, progress.counts.written) == (60, 60)
    assert ids(bench) == list(range(60))
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {0: 60}


@both_deliveries
def test_progress_of_a_newer_version_stops_its_partition_and_stays(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2, delivery=delivery, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(60, partitions=2))
    plan = bench.plan()
    first = bench.worker(plan)
    first.open()
    first.run_chunk()
    first.close()
    before = held(bench.bootstrap, progress_group_of(bench.pipeline.group), bench.topic)
    written = rewrite(bench, unreadable)

    stopped, neighbour = bench.worker(plan, 0, 1).run()

    after = held(bench.bootstrap, progress_group_of(bench.pipeline.group), bench.topic)
    assert stopped.state == "stopped"
    assert "partition 0" in (stopped.reason or "")
    assert "written by kpipe 9.8.0" in (stopped.reason or "")
    assert (after.offset, after.metadata) == (10, written)
    assert neighbour.complete
    assert ids(bench) == [number for number in range(60) if number % 2 or number < 20]
    for step in (bench.plan, lambda: bench.checkpoint(plan)):
        with pytest.raises(
            DocumentError, match=r"^partition 0 in group '.*\.kpipe': Stored.*, written by kpipe 9\.8\.0"
        ):
            step()
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 2) == {}

    # The version that can read it goes on.
    hold(bench.bootstrap, progress_group_of(bench.pipeline.group), before)
    (progress,) = bench.work(plan, 0)
    assert progress.complete
    assert ids(bench) == list(range(60))


@both_deliveries
def test_a_newer_version_that_comes_while_a_run_is_at_work_stops_it(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(60))
    plan = bench.plan()
    worker = bench.worker(plan)
    worker.open()
    worker.run_chunk()
    if delivery == "exactly_once":
        newer = Producer({"bootstrap.servers": bench.bootstrap, "transactional.id": plan.transactional_id(0)})
        newer.init_transactions(30)
    written = rewrite(bench, unreadable)

    worker.run_chunks()
    worker.close()

    progress = worker.assignment[0].progress
    assert progress.state == "stopped"
    assert "written by kpipe 9.8.0" in (progress.reason or "")
    after = held(bench.bootstrap, progress_group_of(bench.pipeline.group), bench.topic)
    assert (after.offset, after.metadata) == (10, written)


@both_deliveries
@pytest.mark.parametrize("says_so_early", [True, False], ids=["before a chunk", "in the midst of one"])
def test_a_budget_is_not_kept_by_guessing_what_a_newer_version_has_counted(
    broker: SandboxBroker, delivery: Delivery, says_so_early: bool
) -> None:
    spec: dict[str, Any] = {"segments": ["faulty_kit:fails_at_five"], "max_dead_letters": 3, "chunk_records": 10}
    bench = Bench.make(broker.bootstrap_servers, partitions=2, delivery=delivery, **spec)
    # Number 5, in partition 0, faults.
    fill(bench.bootstrap, bench.topic, [replace(each, partition=int(at >= 20)) for at, each in enumerate(numbered(40))])
    plan = bench.plan()
    job, group = bench.attempt(plan), progress_group_of(bench.pipeline.group)
    neighbour = bench.worker(plan, 1, job=job)
    neighbour.open()
    neighbour.run_chunk()
    neighbour.close()
    before = held(bench.bootstrap, group, bench.topic, 1)
    # A partition that says by itself that it stops the pipeline is read by all before each chunk, the others when a
    # record faults.
    written = rewrite(bench, lambda document: {**unreadable(document), "stops_run": says_so_early}, 1)

    (progress,) = bench.work(plan, 0, job=job)

    stored = 0 if says_so_early else 5
    assert (ids(bench), progress.next_offset) == ([*range(stored), *range(20, 30)], stored)
    assert (progress.state, progress.next_offset) == ("stopped", stored)
    assert (progress.reason or "").startswith(
        "what the run has counted is not known: partition 1: StoredProgress.schema_version is"
    )
    assert "written by kpipe 9.8.0" in (progress.reason or "")
    assert (progress.counts.read, progress.counts.dead_lettered) == (stored, 0)
    assert held(bench.bootstrap, group, bench.topic, 1).metadata == written

    hold(bench.bootstrap, group, before)
    assert all(each.complete for each in bench.work(plan))
    assert bench.checkpoint(plan).totals.dead_lettered == 1
    assert ids(bench) == [each for each in range(40) if each != 5]


def told_half_way(bench: Bench) -> Plan:
    """A run that has told more than fits beside its offset, and has not come to its end."""
    fill(bench.bootstrap, bench.topic, numbered(100))
    plan = replace(bench.plan(), metadata_bytes=LEAST_METADATA_BYTES)
    first = bench.worker(plan)
    first.open()
    first.run_chunk()
    first.run_chunk()
    first.close()
    return plan


def less_told(document: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in document.items() if name not in ("reason", "inherited")}
    return {**kept, "kpipe": "Details 0.0.9"}


def more_told(document: dict[str, Any]) -> dict[str, Any]:
    own = {**document["own"], "weighed": 7}
    return {**document, "kpipe": "Details 9.8.0", "own": own, "weather": {"fair": True}}


@both_deliveries
@pytest.mark.parametrize("change", [less_told, more_told])
def test_counts_of_another_version_are_continued(
    broker: SandboxBroker, delivery: Delivery, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=20, segments=["telling_kit:Tells"])
    plan = told_half_way(bench)
    rewrite(bench, change, group=details_group_of(progress_group_of(bench.pipeline.group)))

    (progress,) = bench.work(plan)

    assert progress.complete
    counts = bench.checkpoint(plan).totals
    assert (counts.read, counts.dead_lettered) == (100, 10)
    assert counts.named == dict.fromkeys(telling_kit.NAMES, 90)
    assert sum(each.count for each in counts.causes) == 10


@both_deliveries
def test_details_of_a_newer_version_stop_their_partition_and_stay(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=20, segments=["telling_kit:Tells"])
    plan = told_half_way(bench)
    group = details_group_of(progress_group_of(bench.pipeline.group))
    before = held(bench.bootstrap, group, bench.topic)
    written = rewrite(bench, lambda document: {**unreadable(document), "kpipe": "Details 9.8.0"}, group=group)

    (progress,) = bench.work(plan)

    assert (progress.state, progress.next_offset) == ("stopped", plan.ranges[0].start)
    assert "stored progress of partition 0 is unreadable and was left unchanged: Details.s" in (progress.reason or "")
    assert "written by kpipe 9.8.0" in (progress.reason or "")
    assert held(bench.bootstrap, group, bench.topic).metadata == written
    assert held(bench.bootstrap, progress_group_of(bench.pipeline.group), bench.topic).offset == 40
    for step in (bench.plan, lambda: bench.checkpoint(plan)):
        with pytest.raises(
            DocumentError, match=r"^partition 0 in group '.*\.details': Details.*, written by kpipe 9\.8\.0"
        ):
            step()

    # The version that can read it goes on.
    hold(bench.bootstrap, group, before)
    (progress,) = bench.work(plan)
    assert progress.complete
    counts = bench.checkpoint(plan).totals
    assert (counts.read, counts.dead_lettered, counts.named) == (100, 10, dict.fromkeys(telling_kit.NAMES, 90))
    assert ids(bench) == [number for number in range(100) if number % 10]


def test_a_letter_of_a_newer_version_stops_its_redrive_by_name_and_goes_back_where_it_can_be_read(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = ["faulty_kit:odd_ones_fail"]
    bench = Bench.make(broker.bootstrap_servers, segments=segments, dead_letter={"format": "envelope"})
    fill(bench.bootstrap, bench.topic, numbered(10))
    bench.work(bench.plan("before"))
    one = read_all(bench.bootstrap, bench.dead)[-1]
    letter = json.loads(one.value or b"")
    value = base64.b64encode(json.dumps({"id": 99}).encode()).decode()
    newer = {
        **letter, "kpipe": "Envelope 9.8.0", "schema_version": 2, "value": value,
        "source": {**letter["source"], "offset": 99},
    }  # fmt: skip
    fill(bench.bootstrap, bench.dead, [Sent(json.dumps(newer).encode(), headers=one.headers)])
    fill(bench.bootstrap, bench.topic, numbered(10, start=10))
    bench.work(bench.plan("behind"))
    newer_offset = next(
        each.offset for each in read_all(bench.bootstrap, bench.dead) if b"9.8.0" in (each.value or b"")
    )
    fixed_bench = fixed(bench)

    (progress,) = work(fixed_bench, order(fixed_bench))

    said = (
        f"offset {newer_offset}: the dead letter there cannot be read: Envelope.schema_version is 2, written by kpipe "
        "9.8.0, and kpipe"
    )
    assert (progress.state, progress.next_offset) == ("stopped", newer_offset)
    assert (progress.reason or "").startswith(said)
    assert "upgrade kpipe here" in (progress.reason or "")
    assert progress.counts.named == {"kpipe:redriven": 5}
    assert ids(bench) == [*range(10), *range(10, 20, 2)]
    would = dry_run(fixed_bench)
    (seen,) = would.partitions
    assert (would.complete, seen.next_offset, would.outcomes["already_redriven"]) == (False, newer_offset, 5)
    assert (seen.reason or "").startswith(said)

    # It may be the one that somebody looks for.
    check_selection(bench.settings, order(fixed_bench, "sought").plan, Selection(exception_class="NobodyHasItError"))

    # What lies behind it goes back where somebody asks for that, and it goes back with a version that can read it.
    assert redrive(fixed_bench, "behind", start=Explicit({0: newer_offset + 1})).named == {"kpipe:redriven": 5}
    monkeypatch.setattr(Envelope, "SCHEMA_VERSION", 2)
    only = {"start": Explicit({0: newer_offset}), "end": Explicit({0: newer_offset + 1})}
    assert redrive(fixed_bench, "upgraded", **only).named == {"kpipe:redriven": 1}
    assert ids(bench) == [*range(20), 99]


def test_a_mark_of_a_newer_version_fails_the_plan_by_name(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    plan = bench.plan()
    bench.work(plan)
    bench.checkpoint(plan)
    group = bench.pipeline.group
    mark = json.loads(held(bench.bootstrap, group, bench.topic).metadata or "")
    newer = json.dumps({**mark, "kpipe": "CommitMark 9.8.0", "schema_version": mark["schema_version"] + 1})
    hold(bench.bootstrap, group, TopicPartition(bench.topic, 0, 10, newer))
    with pytest.raises(DocumentError, match=rf"^partition 0 in group '{group}': CommitMark.*written by kpipe 9\.8\.0"):
        bench.plan()
