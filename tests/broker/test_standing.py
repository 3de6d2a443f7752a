"""Where a group stands, as plan, run, checkpoint and gate see it: nothing is passed over, and nothing written twice."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from airflow_provider_kpipe import KafkaDestination, PartitionScaling
from airflow_provider_kpipe.checkpointing import committer
from airflow_provider_kpipe.checkpointing.draining import look
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.kafka_names import checkpoint_id_of, progress_group_of, sequence_group_of
from airflow_provider_kpipe.contract.offsets.limits import At, Committed, Earliest, Explicit
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.exceptions import CommitError, GroupMovedError, PlanError, StalePlanError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.planning import ranges as planner
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics, kafka_consumer_groups
from airflow_provider_kpipe.transactions.offset_transaction import OffsetTransaction
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, commit, committed, fill, fill_in_transactions, held, hold, numbered, read_all

LATEST = Committed("latest")


def ids(bench: Bench) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output)]


def whole(bench: Bench, run_key: str, **wishes: Any) -> Plan:
    """Plan, run and checkpoint."""
    plan = bench.plan(run_key=run_key, **wishes)
    bench.work(plan)
    assert bench.checkpoint(plan).complete
    return plan


def in_pieces(broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A pipeline that cuts its partition of 40 records into pieces."""
    monkeypatch.setattr(planner, "SHORTEST_PIECE", 10)
    bench = Bench.make(broker.bootstrap_servers, scaling=PartitionScaling("relax_ordering_within_partition"))
    fill(bench.bootstrap, bench.topic, numbered(40))
    return bench


def work_pieces(bench: Bench, job: Job, slots: Iterable[int]) -> None:
    for slot in slots:
        bench.piece(job, slot, task=slot + 1).run()


def at(bench: Bench, partitions: int = 1) -> dict[int, int]:
    return committed(bench.bootstrap, bench.pipeline.group, bench.topic, partitions)


def delete_group(bench: Bench, group: str) -> None:
    # A client that nobody holds is collected, and answers nobody.
    admin = AdminClient(bench.settings)
    admin.delete_consumer_groups([group])[group].result(30)


def gate(bench: Bench, plan: Plan) -> list[bool]:
    """Whether a gate that waits for a plan is open, by partition; deferred, it has nothing but its target."""
    target = DrainTarget.of_plan(plan, group=None, partitions=None)
    return [each.drained for each in look(bench.settings, target)]


def recreate(bench: Bench) -> None:
    admin = AdminClient(bench.settings)
    admin.delete_topics([bench.topic])[bench.topic].result(30)
    create_topics(bench.bootstrap, bench.topic, partitions=1)


def starts(plan: Plan) -> list[int]:
    return [each.start for each in plan.ranges]


def test_a_partition_that_is_empty_at_its_first_run_is_read_from_there_on(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    whole(bench, "first", start=LATEST)
    assert at(bench) == {0: 0}
    fill(bench.bootstrap, bench.topic, numbered(30))
    whole(bench, "second", start=LATEST)
    assert ids(bench) == list(range(30))


def test_a_partition_that_is_added_to_a_live_topic_is_read_from_its_beginning(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(5))
    whole(bench, "first")
    admin = AdminClient(bench.settings)
    admin.create_partitions([NewPartitions(bench.topic, 2)])[bench.topic].result(30)
    with Positions(bench.settings) as positions:
        wait_for(lambda: len(positions.topic(bench.topic).partitions) == 2, "the new partition")
    # Before its first plan and after it.
    for run in ("second", "third"):
        fill(bench.bootstrap, bench.topic, [Sent(value=b'{"id": 100}', partition=1)] * 3)
        whole(bench, run, start=LATEST)
    assert [each for each in ids(bench) if each == 100] == [100] * 6


def test_a_group_that_is_deleted_starts_over_where_that_is_said_and_goes_on_from_there(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    # After its very first run already.
    whole(bench, "first")
    delete_group(bench, bench.pipeline.group)
    fill(bench.bootstrap, bench.topic, numbered(10, start=10))

    with pytest.raises(PlanError, match="no committed offset, though an earlier run knew it at 10"):
        bench.plan(run_key="as ever")
    assert starts(bench.plan(run_key="over again", start=Committed("earliest"))) == [0]
    whole(bench, "from now on", start=LATEST)
    assert at(bench) == {0: 20}
    fill(bench.bootstrap, bench.topic, numbered(10, start=20))
    whole(bench, "next", start=LATEST)
    assert ids(bench) == [*range(10), *range(20, 30)]


def beside_a_live_run(broker: SandboxBroker, chunks: int | None) -> Bench:
    """A live run over [20, 80) that has stored so many chunks of ten, or all, and a backfill over [0, 30)."""
    bench = Bench.make(broker.bootstrap_servers, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(20))
    whole(bench, "first")
    fill(bench.bootstrap, bench.topic, numbered(60, start=20))
    live = bench.plan(run_key="live")
    worker = bench.worker(live)
    worker.open()
    for _ in range(6 if chunks is None else chunks):
        worker.run_chunk()
    whole(bench, "back", publish=True, start=Explicit({0: 0}), end=Explicit({0: 30}))
    assert at(bench) == {0: 30}
    worker.run_chunks()
    assert worker.assignment[0].progress.complete
    worker.close()
    assert bench.checkpoint(live).complete
    return bench


@pytest.mark.parametrize("chunks", [3, None], ids=["at work", "waiting for its checkpoint"])
def test_a_published_backfill_writes_only_its_window_again(broker: SandboxBroker, chunks: int | None) -> None:
    bench = beside_a_live_run(broker, chunks)
    assert at(bench) == {0: 80}
    assert bench.plan(run_key="next").pending == ()
    assert sorted(ids(bench)) == sorted([*range(80), *range(30)])


def test_a_published_window_passes_over_nothing_that_a_new_group_has_not_read(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, [Sent(value=b'{"id": 1}', timestamp=1_000 + each) for each in range(100)])
    with pytest.raises(PlanError, match="pass over 0 to 49, which it has not read"):
        bench.plan(run_key="back", publish=True, start=At(1_050), end=At(1_060))
    whole(bench, "back", publish=True, start=Earliest(), end=At(1_060))
    assert starts(bench.plan(run_key="live")) == [60]


def test_but_over_what_has_left_the_topic(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    whole(bench, "first")
    fill(bench.bootstrap, bench.topic, numbered(20, start=10))
    admin = AdminClient(bench.settings)
    for future in admin.delete_records([TopicPartition(bench.topic, 0, 20)]).values():
        future.result(30)
    whole(bench, "back", publish=True, start=Earliest())
    assert at(bench, 1) == {0: 30}


def test_a_partition_of_a_published_run_that_stopped_below_the_group_holds_up_no_other(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(40, partitions=2))
    whole(bench, "first")
    fill(bench.bootstrap, bench.topic, numbered(40, partitions=2, start=40))
    again = bench.plan(run_key="again", publish=True, start=Earliest())
    bench.work(again, 0)
    stopped = bench.worker(again, 1)
    stopped.open()
    stopped.run_chunk()
    stopped.close()
    assert [each.complete for each in bench.checkpoint(again).partitions] == [True, False]
    assert at(bench, 2) == {0: 40, 1: 20}


def test_a_gate_on_a_plan_opens_where_a_partition_has_nothing_in_the_window(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2)
    fill(bench.bootstrap, bench.topic, [Sent(timestamp=1_000 + each, partition=0) for each in range(20)])
    fill(bench.bootstrap, bench.topic, [Sent(timestamp=1_000, partition=1)] * 5)
    plan = whole(bench, "back", start=At(1_010), end=At(1_015))
    assert gate(bench, plan) == [True, True]


def test_also_where_the_window_is_published(broker: SandboxBroker) -> None:
    """The group is taken nowhere in a partition of which nothing was read."""
    bench = Bench.make(broker.bootstrap_servers, partitions=2)
    fill(bench.bootstrap, bench.topic, [Sent(timestamp=1_000 + each, partition=0) for each in range(20)])
    fill(bench.bootstrap, bench.topic, [Sent(timestamp=500, partition=1)] * 5)
    plan = bench.plan("back", publish=True, start=At(1_000), end=At(1_015))
    assert gate(bench, plan) == [False, True]
    bench.work(plan)
    assert bench.checkpoint(plan).complete
    assert (at(bench, 2), gate(bench, plan)) == ({0: 15}, [True, True])


def test_a_gate_waits_for_its_own_plan_also_where_an_earlier_one_had_the_same_key(broker: SandboxBroker) -> None:
    """Its DAG run was deleted, and triggered again."""
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    first = whole(bench, "back", start=Earliest())
    assert gate(bench, first) == [True]
    again = bench.plan("back", start=Earliest())
    assert gate(bench, again) == [False]
    bench.work(again)
    assert bench.checkpoint(again).complete
    assert gate(bench, again) == [True]


def test_offsets_of_a_deleted_topic_open_no_gate_and_hide_no_record(broker: SandboxBroker) -> None:
    """A checkpoint that was under way when the topic was deleted commits after that."""
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(50))
    first = whole(bench, "one")
    left = held(bench.bootstrap, bench.pipeline.group, bench.topic)
    recreate(bench)
    fill(bench.bootstrap, bench.topic, numbered(60, start=100))
    hold(bench.bootstrap, bench.pipeline.group, left)

    with pytest.raises(StalePlanError, match="was re-created since the plan was made that is waited for"):
        gate(bench, first)
    with pytest.raises(PlanError, match="pass over 0 to 29, which it has not read"):
        bench.plan("back", publish=True, start=Explicit({0: 30}))
    plan = bench.plan("two", start=Committed("earliest"), end=Explicit({0: 40}))
    assert gate(bench, plan) == [False]
    bench.work(plan)
    assert bench.checkpoint(plan).complete
    assert (at(bench), gate(bench, plan)) == ({0: 40}, [True])
    whole(bench, "three")
    assert [each for each in ids(bench) if each >= 100] == list(range(100, 160))


def test_a_cap_is_not_spent_on_what_has_left_the_topic(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, source={"on_data_loss": "skip"})
    fill(bench.bootstrap, bench.topic, numbered(10))
    whole(bench, "first")
    fill(bench.bootstrap, bench.topic, numbered(990, start=10))
    admin = AdminClient(bench.settings)
    for future in admin.delete_records([TopicPartition(bench.topic, 0, 900)]).values():
        future.result(30)
    plan = bench.plan(run_key="next", max_records=60)
    (progress,) = bench.work(plan)
    assert (progress.counts.read, progress.counts.lost, progress.next_offset) == (60, 890, 960)
    assert bench.checkpoint(plan).complete


def test_a_reset_to_the_first_gap_of_a_run_in_pieces_reads_all_that_follows(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = in_pieces(broker, monkeypatch)
    plan = bench.plan(run_key="one")
    job = bench.claim(plan)
    work_pieces(bench, job, [slot for slot in range(len(plan.ranges[0].pieces)) if slot != 1])
    bench.checkpoint(plan)
    gap = at(bench)[0]
    assert bench.plan(run_key="by itself").ranges[0].done != ()
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: gap})
    assert [(each.start, each.done) for each in bench.plan(run_key="two").ranges] == [(gap, ())]


def test_a_cap_that_ends_in_a_hole_does_not_read_the_record_behind_it(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    # 0-3, a marker at 4, 5-8, a marker at 9.
    fill_in_transactions(bench.bootstrap, bench.topic, [(numbered(4), True), (numbered(4, start=4), True)])
    first = whole(bench, "one", max_records=5)
    assert (first.ranges[0].end, ids(bench)) == (5, [0, 1, 2, 3])
    whole(bench, "two")
    assert ids(bench) == list(range(8))


def test_a_group_that_was_set_by_hand_at_first_and_again_later_is_read_again(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    for count in (1, 2, 3):
        commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 0})
        whole(bench, f"run-{count}")
        assert ids(bench) == list(range(10)) * count


def test_a_cleared_run_whose_progress_has_expired_is_complete(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    plan = whole(bench, "one")
    delete_group(bench, progress_group_of(bench.pipeline.group))
    with Positions(bench.settings) as positions:
        assert [each.complete for each in positions.progress(plan)] == [True]
    (again,) = bench.work(plan, 0)
    assert (again.complete, again.counts.read, ids(bench)) == (True, 0, list(range(10)))


def test_so_is_one_where_somebody_has_reset_the_group_since(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    plan = whole(bench, "one")
    delete_group(bench, progress_group_of(bench.pipeline.group))
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 6})
    (again,) = bench.work(plan, 0)
    assert (again.complete, again.counts.read, ids(bench)) == (True, 0, list(range(10)))
    # The reset is heeded all the same.
    whole(bench, "two")
    assert ids(bench) == [*range(10), *range(6, 10)]


def test_so_is_what_pieces_have_done_whose_progress_has_expired(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint of a run that stopped half-way has told of it above the offset of the group."""
    bench = in_pieces(broker, monkeypatch)
    plan = bench.plan(run_key="one")
    slots = range(len(plan.ranges[0].pieces))
    job = bench.claim(plan)
    work_pieces(bench, job, slots[2:])
    bench.checkpoint(plan)
    assert at(bench) == {0: 0}
    for slot in (0, *slots[2:]):
        delete_group(bench, progress_group_of(bench.pipeline.group, slot))
    again = bench.claim(plan)
    work_pieces(bench, again, slots)
    assert sorted(ids(bench)) == list(range(40))
    assert bench.checkpoint(plan).complete
    assert at(bench) == {0: 40}


def test_a_backfill_that_is_only_taken_on_again_loses_nothing_that_expired_pieces_have_done(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first piece is stored again, and its checkpoint comes once more: what it told of before stays told."""
    bench = in_pieces(broker, monkeypatch)
    plan = bench.plan(run_key="one", start=Explicit({0: 0}), end=Explicit({0: 40}))
    slots = range(len(plan.ranges[0].pieces))
    job = bench.claim(plan)
    work_pieces(bench, job, slots[2:])
    bench.checkpoint(plan)
    for slot in slots[2:]:
        delete_group(bench, progress_group_of(plan.working_group, slot))
    bench.claim(plan)
    bench.checkpoint(plan)
    again = bench.claim(plan)
    work_pieces(bench, again, slots)
    assert sorted(ids(bench)) == list(range(40))
    assert bench.checkpoint(plan).complete


@pytest.mark.parametrize("publish", [True, False], ids=["published", "on its own"])
def test_a_backfill_of_which_everything_is_forgotten_is_refused_and_writes_nothing_twice(
    broker: SandboxBroker, publish: bool
) -> None:
    bench, plan = stopped_backfill(broker, publish)
    for group in kafka_consumer_groups(bench.bootstrap, "--list").split():
        if group.startswith(plan.working_group):
            delete_group(bench, group)
    # The second time too: a refusal leaves nothing behind that the next attempt would take for a memory.
    for _ in range(2):
        with pytest.raises(StalePlanError, match=r"the stored offsets of run .* have expired in partitions \[0\]"):
            bench.attempt(plan)
    assert ids(bench) == list(range(10))


def test_one_whose_number_alone_is_forgotten_goes_on(broker: SandboxBroker) -> None:
    bench, plan = stopped_backfill(broker, publish=True)
    delete_group(bench, sequence_group_of(plan.working_group))
    bench.work(plan)
    assert bench.checkpoint(plan).complete
    assert ids(bench) == list(range(30))


def stopped_backfill(broker: SandboxBroker, publish: bool) -> tuple[Bench, Plan]:
    """A window of 30 records, of which ten are written; its checkpoint has come."""
    bench = Bench.make(broker.bootstrap_servers, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(30))
    plan = bench.plan(run_key="back", publish=publish, start=Explicit({0: 0}), end=Explicit({0: 30}))
    worker = bench.worker(plan)
    worker.open()
    worker.run_chunk()
    worker.close()
    assert not bench.checkpoint(plan).complete
    return bench, plan


def test_a_topic_that_is_re_created_during_the_first_run_is_read_from_its_beginning(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench.make(broker.bootstrap_servers, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(20))
    plan = bench.plan(run_key="one")
    worker = bench.worker(plan)
    worker.open()
    worker.run_chunk()
    recreate(bench)
    fill(bench.bootstrap, bench.topic, numbered(30, start=100))
    # As if that had happened between the worker's last look and its commit: what it stores now lies beside an offset of
    # the new topic.
    monkeypatch.setattr(worker.topic, "check", lambda: None)
    worker.run_chunk()
    worker.close()

    following = whole(bench, "two")

    assert starts(following) == [0]
    assert [each for each in ids(bench) if each >= 100] == list(range(100, 130))


def of_epoch(plan: Plan, epoch: int) -> Plan:
    """The plan as if it had been made under another leader."""
    return dataclasses.replace(
        plan, ranges=tuple(dataclasses.replace(each, leader_epoch=epoch) for each in plan.ranges)
    )


def test_a_log_that_was_cut_and_has_grown_again_stops_by_name(broker: SandboxBroker) -> None:
    """What is stored says that another leader had the records: one that the broker knows nothing of."""
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    first = bench.plan(run_key="one")
    bench.work(first)
    bench.checkpoint(of_epoch(first, 7))
    delete_group(bench, progress_group_of(bench.pipeline.group))
    fill(bench.bootstrap, bench.topic, numbered(10, start=10))

    with pytest.raises(PlanError, match=r"partition 0 of .* was truncated by an unclean election: .* ends at 10"):
        bench.plan(run_key="two")
    # And where that is found out after the plan: by the worker.
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 10})
    made = bench.plan(run_key="three")
    (stopped,) = bench.work(of_epoch(made, 7))
    assert stopped.state == "stopped"
    assert "the topic was truncated or re-created (" in (stopped.reason or "")
    assert ids(bench) == list(range(10))


def test_a_log_that_was_not_cut_is_none_though_an_older_plan_has_stored_what_came_under_a_later_leader(
    tmp_path: Path,
) -> None:
    """A run that has looked at the topic before the election finds its range done, and further, by a later one."""
    with SandboxBroker(tmp_path) as own:
        bench = Bench.make(own.bootstrap_servers)
        fill(bench.bootstrap, bench.topic, numbered(10))
        (before,) = bench.plan(run_key="before").ranges
        own.restart()
        fill(bench.bootstrap, bench.topic, numbered(10, start=10))
        newer = bench.plan(run_key="newer")
        assert newer.ranges[0].leader_epoch > before.leader_epoch
        late = of_epoch(bench.plan(run_key="late", end=Explicit({0: 10})), before.leader_epoch)
        bench.work(newer)
        assert bench.checkpoint(newer).complete
        bench.work(late)
        bench.checkpoint(late)
        fill(bench.bootstrap, bench.topic, numbered(5, start=20))

        following = whole(bench, "following")

        assert starts(following) == [20]
        assert ids(bench) == list(range(25))


def test_a_published_window_does_not_hide_that_a_log_was_cut_below_it(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    first = bench.plan(run_key="one")
    bench.work(first)
    bench.checkpoint(of_epoch(first, 7))
    delete_group(bench, progress_group_of(bench.pipeline.group))
    fill(bench.bootstrap, bench.topic, numbered(10, start=10))
    window: dict[str, Any] = {"start": Explicit({0: 10}), "end": Explicit({0: 15})}
    with pytest.raises(PlanError, match=r"partition 0 of .* was truncated by an unclean election: .* ends at 10"):
        bench.plan(run_key="window", publish=True, **window)
    assert bench.plan(run_key="own", **window).pending


def test_so_does_an_attempt_behind_the_late_checkpoint_of_an_older_plan(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    older, newer = bench.plan(run_key="older"), bench.plan(run_key="newer")
    bench.work(older)
    bench.checkpoint(of_epoch(older, 7))
    with pytest.raises(PlanError, match=r"partition 0 of .* was truncated by an unclean election: .* ends at 10"):
        bench.attempt(newer)


def test_so_do_both_where_the_cut_is_below_what_pieces_have_completed_above_the_group(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other records may have taken the offsets of those that need no reading any more."""
    bench = in_pieces(broker, monkeypatch)
    older, newer = bench.plan(run_key="older"), bench.plan(run_key="newer")
    last = len(older.ranges[0].pieces) - 1
    work_pieces(bench, bench.claim(older), [last])
    bench.checkpoint(of_epoch(older, 7))
    assert at(bench) == {0: 0}
    with pytest.raises(PlanError, match=r"partition 0 of .* was truncated by an unclean election: .* ends at 40"):
        bench.plan(run_key="newest")
    with pytest.raises(PlanError, match=r"partition 0 of .* was truncated by an unclean election: .* ends at 40"):
        bench.attempt(newer)


def test_a_topic_that_grows_changes_nobodys_writer(broker: SandboxBroker) -> None:
    """An older worker that stands still is fenced by the newer one of its partition, whatever was added since."""
    bench = Bench.make(broker.bootstrap_servers, partitions=64, chunk_records=10)
    records = [Sent(value=json.dumps({"id": each}).encode(), partition=1) for each in range(40)]
    fill(bench.bootstrap, bench.topic, records)
    older = bench.plan(run_key="older", partitions=(1,))
    stalled = bench.worker(older, 1)
    stalled.open()
    stalled.run_chunk()
    admin = AdminClient(bench.settings)
    admin.create_partitions([NewPartitions(bench.topic, 130)])[bench.topic].result(30)
    with Positions(bench.settings) as positions:
        wait_for(lambda: len(positions.topic(bench.topic).partitions) == 130, "the new partitions")

    newer = bench.plan(run_key="newer", partitions=(1,))
    (done,) = bench.work(newer, 1)
    stalled.run_chunks()
    stalled.close()

    assert done.complete
    assert sorted(ids(bench)) == list(range(40))


def test_an_older_checkpoint_that_was_held_up_takes_the_group_back_in_no_case(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    older = bench.plan(run_key="older")
    bench.work(older)
    fill(bench.bootstrap, bench.topic, numbered(10, start=10))
    newer = bench.plan(run_key="newer")
    begun = bench.attempt(newer)
    members = committer._check_members
    looks: list[int] = []

    def held_up(positions: Positions, plan: Plan) -> None:
        members(positions, plan)
        looks.append(1)
        # Between its last look and its commit, the newer one's checkpoint comes and goes.
        if len(looks) == 2 and plan is older:
            bench.work(newer, job=begun)
            assert bench.checkpoint(newer).complete

    monkeypatch.setattr(committer, "_check_members", held_up)
    with pytest.raises(CommitError, match="another checkpoint of it has come in between"):
        bench.checkpoint(older)
    assert at(bench) == {0: 20}
    # Tried again, it finds that all is done.
    bench.checkpoint(older)
    assert at(bench) == {0: 20}
    assert bench.plan(run_key="next").pending == ()


def test_a_commit_that_is_late_on_the_wire_is_fenced(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    group = bench.pipeline.group
    with OffsetTransaction(bench.settings, checkpoint_id_of(group), bench.topic) as late:
        late.send(group, [TopicPartition(bench.topic, 0, 5)])
        with OffsetTransaction(bench.settings, checkpoint_id_of(group), bench.topic) as newer:
            newer.send(group, [TopicPartition(bench.topic, 0, 9)])
            newer.commit()
        with pytest.raises(Exception, match="fenced"):
            late.commit()
    assert at(bench) == {0: 9}


def test_a_pipeline_may_not_have_the_name_of_what_kpipe_stores(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    for name in (f"{bench.topic}.kpipe", f"{bench.topic}.kpipe.2", f"{bench.topic}.backfill.key"):
        with pytest.raises(ValueError, match="is a name that kpipe makes itself"):
            dataclasses.replace(bench.pipeline, name=name)


def test_two_pipelines_do_not_share_a_group(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    whole(bench, "one")
    other = dataclasses.replace(
        bench, pipeline=dataclasses.replace(bench.pipeline, destination=KafkaDestination(bench.dead), dead_letter=None)
    )
    with pytest.raises(PlanError, match=r"partition 0 of group .* belongs to pipeline"):
        other.plan(run_key="two")
    # Both planned before either has run: the second one to come stops.
    twin = Bench.make(broker.bootstrap_servers)
    fill(twin.bootstrap, twin.topic, numbered(10))
    rival = dataclasses.replace(
        twin, pipeline=dataclasses.replace(twin.pipeline, destination=KafkaDestination(twin.dead), dead_letter=None)
    )
    first, second = twin.plan(run_key="first"), rival.plan(run_key="second")
    twin.work(first)
    (stopped,) = rival.work(second)
    assert (stopped.state, stopped.counts.read) == ("stopped", 0)
    assert "belongs to pipeline" in (stopped.reason or "")
    assert twin.checkpoint(first).complete
    with pytest.raises(GroupMovedError):
        rival.checkpoint(dataclasses.replace(second, number=first.number, run_key=first.run_key))


def test_two_pipelines_over_different_topics_do_not_share_a_group(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    whole(bench, "one")
    other = Bench.make(broker.bootstrap_servers)
    other = dataclasses.replace(other, pipeline=dataclasses.replace(other.pipeline, group_id=bench.pipeline.group))
    with pytest.raises(PlanError, match=f"already belongs to a pipeline over topic '{bench.topic}'"):
        other.plan(run_key="two")
    # The pipeline itself goes on, and the other one where the group has forgotten the first.
    assert bench.plan(run_key="three").pending == ()
    kafka_consumer_groups(
        bench.bootstrap, "--delete-offsets", "--group", f"{bench.pipeline.group}.kpipe.sequence", "--topic", bench.topic
    )
    assert other.plan(run_key="four").ranges


def test_three_plans_before_the_first_checkpoint_write_nothing_twice(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    plans = [bench.plan(run_key=key) for key in ("one", "two")]
    fill(bench.bootstrap, bench.topic, numbered(10, start=10))
    plans.append(bench.plan(run_key="three"))
    for plan in plans:
        bench.work(plan)
        assert bench.checkpoint(plan).complete
    assert (at(bench), ids(bench)) == ({0: 20}, list(range(20)))
    assert bench.plan(run_key="next").pending == ()


def test_the_plan_of_a_host_whose_clock_is_ahead_holds_up_nobody(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    ahead = dataclasses.replace(bench.plan(run_key="ahead"), created_at="2099-01-01T00:00:00+00:00")
    bench.work(ahead)
    assert bench.checkpoint(ahead).complete
    fill(bench.bootstrap, bench.topic, numbered(10, start=10))
    behind = dataclasses.replace(bench.plan(run_key="behind"), created_at="1999-01-01T00:00:00+00:00")
    (progress,) = bench.work(behind)
    assert progress.complete
    assert bench.checkpoint(behind).complete
    assert ids(bench) == list(range(20))
