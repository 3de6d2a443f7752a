"""Plans that were changed on their way, or that their topic has not kept up with: nothing is read or committed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from airflow_provider_kpipe.checkpointing.draining import look
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.exceptions import StalePlanError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.planning.plan_check import check_in_log
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.job_runs import job_run, without_spark
from tests.kit.pipelines import Bench
from tests.kit.topics import committed, fill, numbered


@pytest.fixture(scope="module")
def bench(broker: SandboxBroker) -> Bench:
    made = Bench.make(broker.bootstrap_servers, partitions=2)
    fill(made.bootstrap, made.topic, numbered(10, partitions=2))
    return made


def changed(bench: Bench, changes: dict[str, Any]) -> Plan:
    plan: Plan = replace(bench.plan(), **changes)
    return plan


CHANGED: list[tuple[dict[str, Any], str]] = [
    ({"ranges": (PartitionRange(0, 0, 6, None),)}, "ends at 6 in partition 0 of .*, and the log at 5"),
    # Nothing to read, and to be committed where a group begins.
    ({"ranges": (PartitionRange(1, 900, 900, None),)}, "ends at 900 in partition 1 of .*, and the log at 5"),
    ({"ranges": (PartitionRange(2, 0, 1, None),), "topic_partitions": 3}, "has partition 2, and topic .* 0 to 1"),
    ({"topic_id": "another"}, "was re-created since it was planned"),
]


each_change = pytest.mark.parametrize(("changes", "said"), CHANGED, ids=[said for _, said in CHANGED])


@each_change
def test_a_plan_that_its_topic_does_not_match_is_refused(bench: Bench, changes: dict[str, Any], said: str) -> None:
    plan = changed(bench, changes)
    with Positions(bench.settings) as positions, pytest.raises(StalePlanError, match=said):
        check_in_log(positions, plan)
    with pytest.raises(StalePlanError, match=said):
        bench.checkpoint(plan)
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 2) == {}


@each_change
def test_a_run_over_it_submits_nothing(bench: Bench, changes: dict[str, Any], said: str) -> None:
    begun = bench.attempt(bench.plan())
    run = job_run(bench, replace(begun, plan=changed(bench, changes)))
    with without_spark() as submitted, pytest.raises(StalePlanError, match=said):
        run.run(lambda progress: {})
    assert submitted == []


@each_change
def test_a_gate_over_it_never_opens(bench: Bench, changes: dict[str, Any], said: str) -> None:
    """Not by the answer that nothing is to be read there."""
    plan = changed(bench, changes)
    target = DrainTarget.of_plan(plan, group=None, partitions=None)
    with pytest.raises(StalePlanError, match=said):
        look(bench.settings, target, plan)


def test_a_topic_that_has_grown_still_has_what_was_planned(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(5))
    plan = bench.plan()
    admin = AdminClient(bench.settings)
    admin.create_partitions([NewPartitions(bench.topic, 2)])[bench.topic].result(30)
    fill(bench.bootstrap, bench.topic, numbered(5))
    with Positions(bench.settings) as positions:
        check_in_log(positions, plan)
