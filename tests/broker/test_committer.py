"""The checkpoint and its guards: what moves the public group, and what keeps it where it is."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.checkpointing import committer
from airflow_provider_kpipe.checkpointing.draining import look
from airflow_provider_kpipe.contract.offsets.limits import Committed, Explicit
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.exceptions import CommitError, GroupInUseError, GroupMovedError, StalePlanError
from airflow_provider_kpipe.kafka.positions import GroupOffset, Positions
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics, kafka_consumer_groups
from airflow_provider_kpipe.transactions.offset_transaction import OffsetTransaction
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, commit, commits, committed, fill, numbered


@pytest.fixture
def bench(broker: SandboxBroker) -> Bench:
    made = Bench.make(broker.bootstrap_servers, partitions=2)
    fill(made.bootstrap, made.topic, numbered(40, partitions=2))
    return made


def held(bench: Bench) -> dict[int, int]:
    return committed(bench.bootstrap, bench.pipeline.group, bench.topic, 2)


def test_it_publishes_what_was_stored_and_kafkas_own_tool_sees_no_lag(bench: Bench) -> None:
    plan = bench.plan()
    bench.work(plan)
    assert held(bench) == {}

    checkpoint = bench.checkpoint(plan)

    assert checkpoint.complete
    assert [(each.start, each.end, each.committed, each.counts.written) for each in checkpoint.partitions] == [
        (0, 20, 20, 20),
        (0, 20, 20, 20),
    ]
    assert held(bench) == {0: 20, 1: 20}
    shown = kafka_consumer_groups(bench.bootstrap, "--describe", "--group", bench.pipeline.group)
    rows = [line.split() for line in shown.splitlines() if line.startswith(bench.topic)]
    # GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG ...
    assert sorted(row[2:6] for row in rows) == [["0", "20", "20", "0"], ["1", "20", "20", "0"]]


def test_running_it_again_changes_nothing(bench: Bench) -> None:
    plan = bench.plan()
    bench.work(plan)
    first = bench.checkpoint(plan)
    assert bench.checkpoint(plan) == first
    assert held(bench) == {0: 20, 1: 20}


def test_a_run_that_stopped_half_way_gets_its_prefix_committed(bench: Bench) -> None:
    plan = bench.plan(max_records_per_partition=15)
    worker = bench.worker(plan, 1)
    worker.run()

    checkpoint = bench.checkpoint(plan)

    assert not checkpoint.complete
    assert [(each.committed, each.complete) for each in checkpoint.partitions] == [(None, False), (15, True)]
    assert held(bench) == {1: 15}
    # The rest of the run, and its checkpoint again: its own commit is not someone else's.
    bench.work(plan)
    assert bench.checkpoint(plan).complete
    assert held(bench) == {0: 15, 1: 15}


def test_a_plan_whose_run_never_came_commits_nothing(bench: Bench) -> None:
    checkpoint = bench.checkpoint(bench.plan())
    assert not checkpoint.complete
    assert held(bench) == {}


def test_the_next_run_goes_on_where_the_checkpoint_left_off(bench: Bench) -> None:
    first = bench.plan("run-1", max_records=10)
    bench.work(first)
    bench.checkpoint(first)
    second = bench.plan("run-2")
    assert [(each.start, each.end, each.committed) for each in second.ranges] == [(5, 20, 5)] * 2
    bench.work(second)
    assert bench.checkpoint(second).complete


def drained(bench: Bench, plan: Plan) -> bool:
    until = Explicit({each.partition: each.end for each in plan.ranges})
    target = DrainTarget.of(
        until, group=plan.group, topic=plan.topic, isolation_level=plan.isolation_level, partitions=None
    )
    return all(each.drained for each in look(bench.settings, target))


def test_an_empty_plan_publishes_what_the_run_before_has_stored(bench: Bench) -> None:
    bench.work(bench.plan("run-1"))
    second = bench.plan("run-2")
    assert (second.pending, drained(bench, second)) == ((), False)

    first = bench.checkpoint(second)

    assert ([each.committed for each in first.partitions], first.complete) == ([20, 20], True)
    assert drained(bench, second)
    assert bench.checkpoint(second) == first
    # Whoever comes next goes on there.
    assert [each.start for each in bench.plan("run-3").ranges] == [20, 20]


def test_a_quiet_partition_of_a_busy_topic_is_published_too(bench: Bench) -> None:
    bench.work(bench.plan("run-1"))
    fill(bench.bootstrap, bench.topic, [Sent(partition=0)] * 5)
    second = bench.plan("run-2")
    # Its run is killed before it begins.
    assert not bench.checkpoint(second).complete
    assert held(bench) == {0: 20, 1: 20}

    bench.work(second)

    assert bench.checkpoint(second).complete
    assert held(bench) == {0: 25, 1: 20}


def test_offsets_published_for_a_run_at_work_remain_its_own(bench: Bench) -> None:
    first = bench.plan("run-1")
    bench.work(dataclasses.replace(first, ranges=tuple(dataclasses.replace(each, end=10) for each in first.ranges)))
    second = bench.plan("run-2", end=Explicit({0: 10, 1: 10}))
    assert (bench.checkpoint(second).complete, held(bench)) == (True, {0: 10, 1: 10})

    bench.work(first)

    assert [each.start for each in bench.plan("run-3").ranges] == [20, 20]
    assert bench.checkpoint(first).complete
    assert held(bench) == {0: 20, 1: 20}


def test_a_new_group_that_begins_at_the_end_stands_there(bench: Bench) -> None:
    """Otherwise the next plan would begin at a later end, and what came in between would never be read."""
    wishes: dict[str, Any] = {"start": Committed("latest")}
    first = bench.plan(run_key="first", **wishes)
    assert first.pending == ()
    assert bench.checkpoint(first).complete
    assert held(bench) == {0: 20, 1: 20}

    fill(bench.bootstrap, bench.topic, numbered(10, partitions=2, start=40))
    second = bench.plan(run_key="second", **wishes)
    assert [(each.start, each.end) for each in second.ranges] == [(20, 25), (20, 25)]


def test_a_group_that_someone_moved_is_not_taken_to_what_the_run_before_has_stored(bench: Bench) -> None:
    bench.work(bench.plan("run-1"))
    second = bench.plan("run-2")
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 3})
    bench.checkpoint(second)
    assert held(bench) == {0: 3, 1: 20}


def kept(bench: Bench) -> list[list[bytes]]:
    return [commits(bench.bootstrap, bench.pipeline.group, bench.topic, each) for each in (0, 1)]


def marks(bench: Bench) -> dict[int, GroupOffset]:
    with Positions(bench.settings) as positions:
        return positions.group_offsets(bench.pipeline.group, bench.topic, (0, 1))


def test_offsets_that_stay_where_they_are_are_committed_again_as_they_are(bench: Bench) -> None:
    first = bench.plan("run-1")
    bench.work(first)
    bench.checkpoint(first)
    fill(bench.bootstrap, bench.topic, [Sent(partition=0)] * 5)
    second = bench.plan("run-2")
    bench.work(second)
    before = marks(bench)

    bench.checkpoint(second)

    assert [len(each) for each in kept(bench)] == [2, 2]
    assert marks(bench)[1] == before[1]
    # And when there is nothing to read at all.
    before = marks(bench)
    assert bench.checkpoint(bench.plan("run-3")).complete
    assert [len(each) for each in kept(bench)] == [3, 3]
    assert marks(bench) == before


def test_partitions_that_were_moved_or_taken_over_are_not_committed_again(bench: Bench) -> None:
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 3, 1: 3})
    older, newer = bench.plan("older"), bench.plan("newer")
    bench.work(newer, 1)
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 5})

    for _ in range(2):
        bench.checkpoint(older)
        # Once, with the mark that it did not have.
        assert [len(each) for each in kept(bench)] == [2, 2]
    assert held(bench) == {0: 5, 1: 3}


def test_live_members_keep_it_from_committing(bench: Bench) -> None:
    plan = bench.plan()
    bench.work(plan)
    member = Consumer({**bench.settings, "group.id": bench.pipeline.group, "client.id": "someone"})
    member.subscribe([bench.topic])
    try:
        with Positions(bench.settings) as positions:
            wait_for(lambda: not member.poll(0.1) or bool(positions.members(bench.pipeline.group)), "a member")
            wait_for(lambda: bool(member.poll(0.1)) or bool(positions.members(bench.pipeline.group)), "a member")
        with pytest.raises(GroupInUseError, match=r"live members .*someone.* nothing was committed"):
            bench.checkpoint(plan)
    finally:
        member.close()
    assert bench.checkpoint(plan).complete


def test_a_group_that_someone_moved_stays_where_they_moved_it(bench: Bench) -> None:
    plan = bench.plan()
    bench.work(plan)
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 3})
    with pytest.raises(GroupMovedError, match=r"partition 0: group .* stood at None .* is at 3 now"):
        bench.checkpoint(plan)
    assert held(bench) == {0: 3}


def test_a_foreign_commit_right_behind_ours_is_named_and_prevails(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = bench.plan()
    bench.work(plan)

    class Overtaken(OffsetTransaction):
        def commit(self) -> None:
            super().commit()
            commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 3})

    with monkeypatch.context() as patch:
        patch.setattr(committer, "OffsetTransaction", Overtaken)
        with pytest.raises(CommitError, match=r"partition 0: group .* was set to 20 and reads 3: someone moves it"):
            bench.checkpoint(plan)
    assert held(bench) == {0: 3, 1: 20}
    # The checkpoint does not move it back when it is run again, and the next run begins where it was put.
    with pytest.raises(GroupMovedError):
        bench.checkpoint(plan)
    assert [each.start for each in bench.plan("next").ranges] == [3, 20]


def test_an_older_plan_does_not_take_the_group_back(bench: Bench) -> None:
    older = bench.plan("older", max_records_per_partition=5)
    newer = bench.plan("newer")
    bench.work(older)
    bench.work(newer)
    bench.checkpoint(newer)
    # What it had stored is the newer one's by now: it has nothing to publish.
    assert not bench.checkpoint(older).complete
    assert held(bench) == {0: 20, 1: 20}


def test_a_run_that_is_behind_the_group_does_not_take_it_back(bench: Bench) -> None:
    plan = bench.plan(max_records_per_partition=5)
    bench.work(plan)
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 20, 1: 20})
    with pytest.raises(GroupMovedError, match="stood at None when the plan was made and is at 20 now"):
        bench.checkpoint(plan)
    assert held(bench) == {0: 20, 1: 20}


def test_a_re_created_topic_is_not_the_planned_one(bench: Bench) -> None:
    plan = bench.plan()
    bench.work(plan)
    admin = AdminClient(bench.settings)
    admin.delete_topics([bench.topic])[bench.topic].result(30)
    create_topics(bench.bootstrap, bench.topic, partitions=2)
    with pytest.raises(StalePlanError, match="re-created since it was planned"):
        bench.checkpoint(plan)


def test_a_backfill_moves_its_own_group_only(bench: Bench) -> None:
    plan = bench.plan("fill", start=Explicit({0: 2, 1: 4}), end=Explicit({0: 8, 1: 9}))
    bench.work(plan)
    assert bench.checkpoint(plan).totals.written == 11
    assert held(bench) == {}
    assert committed(bench.bootstrap, plan.group, bench.topic, 2) == {0: 8, 1: 9}
