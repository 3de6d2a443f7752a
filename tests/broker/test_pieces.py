"""A long range cut into pieces, which several tasks work on: whatever is finished first, nothing is there twice."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.contract.job import pack
from airflow_provider_kpipe.contract.kafka_names import progress_group_of
from airflow_provider_kpipe.contract.offsets.limits import Earliest, Explicit
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.planning import ranges as planner
from airflow_provider_kpipe.sandbox import SandboxBroker
from kpipe_engine.assignment.claiming import Claims
from kpipe_engine.supervision.spark_task import claim_what_is_cut
from kpipe_engine.writing import fencing
from tests.kit.pipelines import Bench
from tests.kit.tasks import work_in_task
from tests.kit.topics import commit, committed, fill, numbered, read_all

DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")
both_deliveries = pytest.mark.parametrize("delivery", DELIVERIES)
RELAXED = PartitionScaling("relax_ordering_within_partition")
ORDERED = PartitionScaling()


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "SHORTEST_PIECE", 25)
    monkeypatch.setattr(planner, "MOST_PIECES", 4)


def make(broker: SandboxBroker, delivery: Delivery = "exactly_once") -> Bench:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10, scaling=RELAXED)
    fill(bench.bootstrap, bench.topic, numbered(100))
    return bench


def progress(bench: Bench, plan: Plan) -> PartitionProgress:
    with Positions(bench.settings) as positions:
        (found,) = positions.progress(plan)
    return found


def ids(bench: Bench) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output)]


def delete_group(bench: Bench, group: str) -> None:
    # A client that nobody holds is collected, and answers nobody.
    admin = AdminClient(bench.settings)
    with contextlib.suppress(KafkaException):
        admin.delete_consumer_groups([group])[group].result(30)


@both_deliveries
def test_pieces_are_finished_in_any_order(broker: SandboxBroker, delivery: Delivery) -> None:
    bench = make(broker, delivery)
    plan = bench.plan()
    assert plan.ranges[0].cuts == (25, 50, 75)
    job = bench.claim(plan)
    for task, slot in enumerate((2, 0, 3, 1), start=1):
        before = progress(bench, plan)
        assert not before.complete
        (done,) = bench.piece(job, slot, task=task).run()
        assert done.complete

    found = progress(bench, plan)
    assert (found.state, found.counts.read, found.counts.written) == ("complete", 100, 100)
    checkpoint = bench.checkpoint(plan)
    assert (checkpoint.complete, checkpoint.partitions[0].committed) == (True, 100)
    assert sorted(ids(bench)) == list(range(100))


def test_it_is_taken_on_without_its_segments(
    broker: SandboxBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the driver, which nobody looks after: an import that hangs or ends its process would do so to the job."""
    mark = tmp_path / "imported"
    monkeypatch.setenv("KPIPE_TEST_IMPORT_MARK", str(mark))
    monkeypatch.delitem(sys.modules, "importing_kit", raising=False)
    made = make(broker)
    bench = dataclasses.replace(made, pipeline=dataclasses.replace(made.pipeline, segments=("importing_kit:one",)))
    plan = bench.plan()
    assert plan.ranges[0].cuts
    job = bench.attempt(plan)

    claim_what_is_cut(pack(job), pack(bench.kafka))

    assert not mark.exists()
    done, said = work_in_task(bench, plan, job=job)
    assert [each["state"] for each in done] == ["complete"] * 4, said
    assert mark.exists()
    assert sorted(ids(bench)) == list(range(100))


@pytest.mark.parametrize("finished", [True, False], ids=["complete", "prefix"])
def test_its_checkpoint_again_once_a_newer_run_has_begun(broker: SandboxBroker, finished: bool) -> None:
    bench = make(broker)
    plan = bench.plan(run_key="older")
    job = bench.claim(plan)
    for slot in range(4 if finished else 2):
        assert bench.piece(job, slot).run()[0].complete
    assert bench.checkpoint(plan).complete is finished
    fill(bench.bootstrap, bench.topic, numbered(100, start=100))
    bench.claim(bench.plan(run_key="newer"))

    again = bench.checkpoint(plan)

    # What it had not finished is the newer one's; where that began behind the whole range, nothing was left to it.
    found = progress(bench, plan)
    assert (again.complete, found.next_offset, found.state) == (
        (True, 100, "complete") if finished else (False, 0, "revoked")
    )
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {0: 100 if finished else 50}


def test_a_checkpoint_that_reads_while_a_newer_run_begins_takes_none_of_its_pieces_for_one_of_its_own(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newer run has cut the partition elsewhere: its second piece begins where that of the older one ends."""
    bench = make(broker)
    older = bench.plan(run_key="older", end=Explicit({0: 50}))
    monkeypatch.setattr(planner, "MOST_PIECES", 2)
    newer = bench.plan(run_key="newer")
    assert (older.ranges[0].cuts, newer.ranges[0].cuts) == ((25,), (50,))

    def meanwhile(positions: Positions, group: str, *asked: Any) -> Any:
        if group == older.progress_group(1):
            # The group of the first pieces has been read by now, and held nothing.
            second = bench.piece(bench.claim(newer), 1)
            second.open()
            second.close()
        return stored(positions, group, *asked)

    stored = Positions.stored
    with monkeypatch.context() as patch:
        patch.setattr(Positions, "stored", meanwhile)
        checkpoint = bench.checkpoint(older)

    assert (checkpoint.complete, checkpoint.partitions[0].reason) == (False, "run newer took the partition over")
    last = bench.plan(run_key="last")
    assert last.ranges[0].done == ()
    job = bench.claim(last)
    for slot in range(len(last.ranges[0].pieces)):
        assert bench.piece(job, slot).run()[0].complete
    assert sorted(ids(bench)) == list(range(100))


def test_a_run_that_does_not_go_on_from_the_group_reads_everything_again(broker: SandboxBroker) -> None:
    bench = make(broker)
    wishes: dict[str, Any] = {"first": {}, "again": {"publish": True, "start": Earliest()}}
    for run_key in wishes:
        plan = bench.plan(run_key=run_key, **wishes[run_key])
        job = bench.claim(plan)
        for slot in range(4):
            assert bench.piece(job, slot).run()[0].complete
        assert bench.checkpoint(plan).complete
    assert sorted(ids(bench)) == sorted([*range(100), *range(100)])


def test_pieces_of_a_run_that_had_the_same_key_are_not_its_own(broker: SandboxBroker) -> None:
    """The group is reset, the DAG run deleted and triggered again, and killed before any but its first piece begins."""
    bench = make(broker)
    for hour in (10, 11):
        plan = bench.plan(run_key="once")
        job = bench.claim(plan)
        if hour == 10:
            bench.piece(job, 2).run()
            commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 0})

    following = bench.plan(run_key="next")
    job = bench.claim(following)
    read = [bench.piece(job, slot).run()[0].counts.read for slot in range(4)]

    assert (following.ranges[0].start, following.ranges[0].done) == (0, ())
    assert read == [25, 25, 25, 25]


def test_the_budget_and_a_stop_reach_all_pieces(broker: SandboxBroker) -> None:
    bench = Bench.make(
        broker.bootstrap_servers,
        scaling=RELAXED,
        segments=["faulty_kit:odd_ones_fail"],
        max_dead_letters=15,
        chunk_records=10,
    )
    fill(bench.bootstrap, bench.topic, numbered(100))
    plan = bench.plan()
    job = bench.claim(plan)
    letters = [bench.piece(job, slot).run()[0].counts.dead_lettered for slot in (0, 1, 2)]
    assert letters == [12, 0, 0]
    assert "more than max_dead_letters=15" in (progress(bench, plan).reason or "")


def test_the_stored_offset_does_not_pass_the_first_unfinished_piece(broker: SandboxBroker) -> None:
    bench = make(broker)
    plan = bench.plan()
    job = bench.claim(plan)
    bench.piece(job, 1).run()
    found = progress(bench, plan)
    assert (found.next_offset, found.beyond, found.state) == (0, ((25, 50),), "running")
    bench.piece(job, 3).run()
    begun = bench.piece(job, 0)
    begun.open()
    begun.run_chunk()
    begun.close()

    found = progress(bench, plan)
    assert (found.next_offset, found.beyond, found.counts.read) == (10, ((25, 50), (75, 100)), 60)


def test_the_next_run_reads_nothing_again_that_a_checkpoint_has_told_of_though_progress_has_expired(
    broker: SandboxBroker,
) -> None:
    bench = make(broker)
    for key in ("first", "second"):
        plan = bench.plan(run_key=key)
        job = bench.claim(plan)
        if key == "first":
            bench.piece(job, 0).run()
        else:
            bench.piece(job, 2).run()
        assert not bench.checkpoint(plan).complete
        assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {0: 25}
    for slot in range(len(plan.ranges[0].pieces)):
        delete_group(bench, progress_group_of(bench.pipeline.group, slot))

    following = bench.plan(run_key="third")
    (planned,) = following.ranges
    assert len(planned.done) == 1
    job = bench.claim(following)
    for slot in range(len(planned.pieces)):
        bench.piece(job, slot).run()
    assert sorted(ids(bench)) == list(range(100))
    assert bench.checkpoint(following).complete


@pytest.mark.parametrize("checkpointed", [True, False])
@pytest.mark.parametrize("scaling", [RELAXED, ORDERED], ids=["relaxed", "ordered"])
def test_the_next_run_reads_nothing_again(broker: SandboxBroker, checkpointed: bool, scaling: PartitionScaling) -> None:
    bench = make(broker)
    plan = bench.plan(run_key="first")
    job = bench.claim(plan)
    bench.piece(job, 1).run()
    bench.piece(job, 3).run()
    begun = bench.piece(job, 0)
    begun.open()
    begun.run_chunk()
    begun.close()
    if checkpointed:
        assert not bench.checkpoint(plan).complete
        assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {0: 10}

    again = dataclasses.replace(bench, pipeline=dataclasses.replace(bench.pipeline, partitions=scaling))
    following = again.plan(run_key="second")
    (planned,) = following.ranges
    assert (planned.start, planned.end, planned.done) == (10, 100, ((25, 50), (75, 100)))
    job = again.claim(following)
    for slot in range(len(planned.pieces)):
        again.piece(job, slot).run()

    assert sorted(ids(again)) == list(range(100))
    assert progress(again, following).counts.read == 40
    assert again.checkpoint(following).complete
    assert committed(again.bootstrap, again.pipeline.group, again.topic, 1) == {0: 100}
    assert again.plan(run_key="third").offsets_planned == 0


@pytest.mark.parametrize("scaling", [RELAXED, ORDERED], ids=["relaxed", "ordered"])
def test_a_newer_run_takes_all_pieces_over(broker: SandboxBroker, scaling: PartitionScaling) -> None:
    bench = make(broker)
    older, plain = bench.plan(run_key="older"), dataclasses.replace(bench.pipeline, partitions=scaling)
    newer_bench = dataclasses.replace(bench, pipeline=plain)
    newer = newer_bench.plan(run_key="newer")
    job = bench.claim(older)
    at_work = [bench.piece(job, slot, task=slot + 1) for slot in (0, 2)]
    for worker in at_work:
        worker.open()
        worker.run_chunk()

    newer_job = newer_bench.claim(newer)
    late = bench.piece(job, 3, task=9)
    (come_late,) = late.run()
    for worker in at_work:
        worker.run_chunks()
        worker.close()
    for slot in range(len(newer.ranges[0].pieces)):
        newer_bench.piece(newer_job, slot, task=slot + 1).run()

    if newer.ranges[0].cuts:
        assert come_late.state == "revoked"
        assert {worker.assignment[0].progress.state for worker in at_work} == {"revoked"}
    assert sorted(ids(bench)) == list(range(100))
    assert newer_bench.checkpoint(newer).complete


def test_the_writers_of_pieces_that_are_fenced_are_closed_again(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Producer] = []

    class Noted(Producer):
        def close(self) -> bool:
            closed.append(self)
            return super().close()

    bench = make(broker)
    older, newer = bench.plan(run_key="older"), bench.plan(run_key="newer")
    bench.claim(older)
    monkeypatch.setattr(fencing, "Producer", Noted)
    bench.claim(newer)
    assert len(closed) == 3


def test_an_older_run_that_comes_late_does_not_fence_the_pieces_of_a_newer_one(broker: SandboxBroker) -> None:
    bench = make(broker)
    older, newer = bench.plan(run_key="older"), bench.plan(run_key="newer")
    job = bench.claim(newer)
    at_work = bench.piece(job, 2)
    at_work.open()

    (come_late,) = bench.piece(bench.attempt(older), 0, task=0).run()

    assert come_late.state == "revoked"
    at_work.run_chunk()  # raises if it was fenced
    at_work.close()
    assert ids(bench) == list(range(50, 60))


@pytest.mark.parametrize("begun", [True, False], ids=["begun", "not yet"])
@pytest.mark.parametrize("scaling", [RELAXED, ORDERED], ids=["relaxed", "ordered"])
def test_a_newer_run_that_dies_while_it_takes_over_forgets_none_of_the_pieces(
    broker: SandboxBroker, scaling: PartitionScaling, begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make(broker)
    older, plain = bench.plan(run_key="older"), dataclasses.replace(bench.pipeline, partitions=scaling)
    newer_bench = dataclasses.replace(bench, pipeline=plain)
    newer = newer_bench.plan(run_key="newer")
    at_work = bench.piece(bench.claim(older), 2, task=2)
    at_work.open()
    if begun:
        at_work.run_chunk()

    def die(*_arguments: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as dying:
        dying.setattr(Claims, "adopt_pieces", die)
        dies = newer_bench.piece(newer_bench.attempt(newer), 0, task=0)
        with pytest.raises(RuntimeError, match="killed"):
            dies.open()
        dies.close()
    # Its lease is there, and this piece of the older run does not know yet.
    at_work.run_chunk()
    job = newer_bench.attempt(newer)
    takes_over = newer_bench.piece(job, 0, task=0)
    takes_over.open()
    takes_over.close()
    at_work.run_chunks()
    at_work.close()
    assert at_work.assignment[0].progress.state == "revoked"

    for slot in range(len(newer.ranges[0].pieces)):
        assert newer_bench.piece(job, slot, task=slot + 1).run()[0].complete
    assert sorted(ids(bench)) == list(range(100))
    assert newer_bench.checkpoint(newer).complete


def test_a_claim_that_finds_its_first_piece_done_by_an_older_run_is_put_down_all_the_same(
    broker: SandboxBroker,
) -> None:
    bench = make(broker)
    older, newer = bench.plan(run_key="older"), bench.plan(run_key="newer")
    job = bench.attempt(newer)
    claims = bench.piece(job, 0, task=0)
    claims.writer.open()
    # The older run comes in between, fences the claim, and completes the first piece.
    older_job = bench.claim(older)
    at_work = bench.piece(older_job, 2, task=3)
    at_work.open()
    at_work.run_chunk()
    assert bench.piece(older_job, 0).run()[0].complete

    while claims.assignment.unclaimed:
        with claims.retry.attempt():
            claims.claim()
    claims.close()

    at_work.run_chunks()
    at_work.close()
    assert at_work.assignment[0].progress.state == "revoked"
    for slot in range(4):
        bench.piece(job, slot, task=slot + 1).run()
    assert sorted(ids(bench)) == list(range(100))
    assert bench.checkpoint(newer).complete


def test_two_claims_in_a_row_that_die_forget_none_of_the_pieces_before_them(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make(broker)
    plans = [bench.plan(run_key=key) for key in ("first", "second", "third", "fourth")]
    at_work = bench.piece(bench.claim(plans[0]), 2, task=2)
    at_work.open()

    def die(*_arguments: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as dying:
        dying.setattr(Claims, "adopt_pieces", die)
        for plan in plans[1:3]:
            dies = bench.piece(bench.attempt(plan), 0, task=0)
            with pytest.raises(RuntimeError, match="killed"):
                dies.open()
            dies.close()
    # Nobody has fenced this piece, and it does not know yet.
    at_work.run_chunk()
    job = bench.claim(plans[3])
    at_work.run_chunks()
    at_work.close()

    for slot in range(4):
        assert bench.piece(job, slot, task=slot + 1).run()[0].complete
    assert sorted(ids(bench)) == list(range(100))
    checkpoint = bench.checkpoint(plans[3])
    assert (checkpoint.complete, checkpoint.totals.written) == (True, 100)
