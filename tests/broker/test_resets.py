"""Groups that somebody moves by hand: back, however often and to whatever offset, or forward."""

from __future__ import annotations

import json

from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.topics import commit, fill, numbered, read_all


def test_a_reset_to_where_the_group_began_is_a_wish_to_read_again(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(20))
    for time in (1, 2, 3):
        commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 5})
        plan = bench.plan(run_key=f"run-{time}")
        assert [(each.start, each.end) for each in plan.ranges] == [(5, 20)]
        bench.work(plan)
        assert bench.checkpoint(plan).partitions[0].committed == 20
        written = [json.loads(each.value or b"")["id"] for each in read_all(bench.bootstrap, bench.output)]
        assert sorted(written) == sorted([*range(5, 20)] * time)


def test_so_is_one_after_a_run_that_has_nothing_to_commit_yet(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(20))
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 5})
    first = bench.plan(run_key="first")
    assert bench.checkpoint(first).partitions[0].committed == 5
    bench.work(first)
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 5})
    second = bench.plan(run_key="second")
    assert [(each.start, each.end) for each in second.ranges] == [(5, 20)]


def test_a_group_that_is_put_forward_goes_on_there_and_what_lies_between_is_not_read(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    first = bench.plan(run_key="first")
    bench.work(first)
    assert bench.checkpoint(first).partitions[0].committed == 10
    fill(bench.bootstrap, bench.topic, numbered(30)[10:])
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 25})
    second = bench.plan(run_key="second")
    assert [(each.start, each.end) for each in second.ranges] == [(25, 30)]
    bench.work(second)
    assert bench.checkpoint(second).partitions[0].committed == 30
    written = [json.loads(each.value or b"")["id"] for each in read_all(bench.bootstrap, bench.output)]
    assert written == [*range(10), *range(25, 30)]
