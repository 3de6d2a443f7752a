"""A transaction that stands between its offsets and its commit keeps their group from being read, for so long."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer, TopicPartition

from airflow_provider_kpipe.checkpointing.draining import look
from airflow_provider_kpipe.contract.kafka_names import checkpoint_id_of
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.exceptions import HeldUpError
from airflow_provider_kpipe.kafka.cluster import Cluster
from airflow_provider_kpipe.planning.truncation import truncated
from airflow_provider_kpipe.sandbox import SandboxBroker
from airflow_provider_kpipe.transactions.offset_transaction import OffsetTransaction
from tests.kit.ends import ended
from tests.kit.pipelines import Bench
from tests.kit.topics import fill, numbered


@pytest.fixture
def bench(broker: SandboxBroker) -> Bench:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    return bench


@pytest.mark.parametrize("begun", ["plan", "attempt", "gate"])
def test_a_task_that_begins_while_a_checkpoint_hangs_names_its_transaction(
    bench: Bench, begun: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, group = bench.plan(), bench.pipeline.group
    target = DrainTarget(group, bench.topic, "read_committed", None, None, None)
    steps: dict[str, Callable[[], object]] = {
        "plan": lambda: bench.plan("next"),
        "attempt": lambda: bench.attempt(plan),
        "gate": lambda: look(bench.settings, target, plan),
    }
    with OffsetTransaction(bench.settings, checkpoint_id_of(group), bench.topic) as checkpoint:
        checkpoint.send(group, [TopicPartition(bench.topic, 0, 5)])
        with monkeypatch.context() as patched:
            brief = property(lambda self: 10.0, lambda self, seconds: None)
            patched.setattr(Cluster, "answer_seconds", brief, raising=False)
            failure = ended(begun, steps[begun])

    assert isinstance(failure, HeldUpError)
    assert failure.retriable
    assert str(failure) == (
        f"group {group!r} cannot be read: a transaction that commits its offsets for partitions 0 of {bench.topic!r} "
        f"has not ended within 10 s, most likely that of transactional id kpipe/{group}/checkpoint; its client "
        "is still running, or was killed before it committed. Try again later, or run the checkpoint of that run "
        "again, which ends the transaction at once; the broker ends it when the transaction's timeout is over"
    )


def test_the_next_checkpoint_ends_it(bench: Bench) -> None:
    plan, group = bench.plan(), bench.pipeline.group
    bench.work(plan)
    with OffsetTransaction(bench.settings, checkpoint_id_of(group), bench.topic) as killed:
        killed.send(group, [TopicPartition(bench.topic, 0, 5)])
        assert bench.checkpoint(plan).partitions[0].committed == 10
        assert bench.plan("next").pending == ()


@pytest.mark.parametrize("offset", [5, 8, 10], ids=["in front", "within", "at the end"])
def test_a_plan_asks_for_cut_logs_behind_an_open_transaction_too(bench: Bench, offset: int) -> None:
    writer = Producer({**bench.settings, "transactional.id": f"{bench.topic}-writer"})
    writer.init_transactions(30)
    writer.begin_transaction()
    for _ in range(5):
        writer.produce(bench.topic, b"open", partition=0)
    assert writer.flush(30) == 0
    try:
        with Cluster(bench.settings, answer_seconds=10) as cluster:
            assert truncated(cluster, bench.pipeline.group, bench.topic, {0: (offset + 5, 0)}) == {}
    finally:
        writer.abort_transaction(30)
