"""What a plan reads of a group while somebody else's checkpoint commits to it."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_kpipe.contract.offsets.limits import Committed
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.topics import commit, fill, numbered, read_all

EARLIEST = Committed("earliest")


def plan_beside_a_checkpoint(bench: Bench, earlier: Plan, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A plan that has read one of the group's two sides when the checkpoint of an earlier one comes."""
    read = Positions.group_offsets
    is_done: list[bool] = []

    def group_offsets(positions: Positions, *asked: Any) -> Any:
        found = read(positions, *asked)
        if not is_done:
            is_done.append(True)
            assert bench.checkpoint(earlier).complete
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Positions, "group_offsets", group_offsets)
        later = bench.plan(run_key="later", start=EARLIEST)
    assert is_done
    return later


def test_a_plan_beside_the_first_checkpoint_of_a_group_goes_on_from_it(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    first = bench.plan(run_key="first", start=EARLIEST)
    bench.work(first)
    later = plan_beside_a_checkpoint(bench, first, monkeypatch)
    bench.work(later)
    assert bench.checkpoint(later).complete
    assert len(read_all(bench.bootstrap, bench.output)) == 10


def test_a_plan_beside_the_first_checkpoint_after_a_reset_goes_on_from_it(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    first = bench.plan(run_key="first", start=EARLIEST)
    bench.work(first)
    bench.checkpoint(first)
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 4})
    second = bench.plan(run_key="second", start=EARLIEST)
    bench.work(second)
    later = plan_beside_a_checkpoint(bench, second, monkeypatch)
    bench.work(later)
    assert bench.checkpoint(later).complete
    assert len(read_all(bench.bootstrap, bench.output)) == 10 + 6
