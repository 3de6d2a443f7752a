"""Somebody puts a group back by hand: its records are read again, however often and to whatever offset."""

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
