"""A cluster that stops answering, and one that is killed, and never come back: each question has an end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import TopicPartition
from pipelines import Bench
from redrives import order
from topics import fill, numbered

from airflow_provider_kpipe.contract.drain_target import DrainTarget
from airflow_provider_kpipe.contract.kafka_names import checkpoint_id_of
from airflow_provider_kpipe.contract.offsets import Earliest, Latest, PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.exceptions import KafkaUnavailableError, KpipeError
from airflow_provider_kpipe.kafka import bounded_reader, bounds, committer, offset_transaction, sequence, topic_limits
from airflow_provider_kpipe.kafka.bounded_reader import read_range
from airflow_provider_kpipe.kafka.cluster import Cluster
from airflow_provider_kpipe.kafka.draining import look
from airflow_provider_kpipe.kafka.offset_transaction import OffsetTransaction
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.kafka.redrive_ledger import ensure_ledger
from airflow_provider_kpipe.kafka.redrive_planning import make_redrive_plan
from airflow_provider_kpipe.kafka.redrive_preview import preview
from airflow_provider_kpipe.kafka.stop_requests import request_stop
from airflow_provider_kpipe.kafka.topic_limits import fit_to_topics
from airflow_provider_kpipe.kafka.transactions import end_open_transactions
from airflow_provider_kpipe.sandbox import SandboxBroker


@pytest.fixture
def own_broker() -> Iterator[SandboxBroker]:
    with SandboxBroker() as running:
        yield running


def shorten_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is that there is an end. A broker that has just come up takes longer for its first answers."""
    monkeypatch.setattr(bounded_reader, "STALL_SECONDS", 1.0)
    monkeypatch.setattr(topic_limits, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(bounds, "CLOSE_SECONDS", 0.2)
    monkeypatch.setattr(offset_transaction, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(sequence, "ANSWER_SECONDS", 1.0)
    made = Cluster.__init__

    def brief(self: Cluster, settings: dict[str, str], *, answer_seconds: float = 1.0) -> None:
        made(self, settings, answer_seconds=min(answer_seconds, 1.0))

    monkeypatch.setattr(Cluster, "__init__", brief)


@pytest.mark.parametrize("trouble", ["killed", "stopped"])
def test_every_step_has_an_end(own_broker: SandboxBroker, trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One broker for all of them: each finds it gone."""
    bench = Bench.make(own_broker.bootstrap_servers, segments=["faulty_kit:odd_ones_fail"])
    fill(bench.bootstrap, bench.topic, numbered(10))
    plan = bench.plan()
    bench.work(plan)
    chosen = order(bench, "dry", target="source")
    with Positions(bench.settings) as positions:
        dead_letters = positions.topic(bench.dead)
    target = DrainTarget(bench.pipeline.group, bench.topic, "read_committed", None, None, None)
    shorten_bounds(monkeypatch)
    if trouble == "killed":
        own_broker.kill()
    else:
        own_broker.pause()

    steps: dict[str, Callable[[], object]] = {
        "plan": lambda: bench.plan("another"),
        "checkpoint": lambda: bench.checkpoint(plan),
        "attempt": lambda: bench.attempt(plan),
        "commit": lambda: commit(bench, plan),
        "gate": lambda: look(bench.settings, target),
        "redrive planning": lambda: make_redrive_plan(
            bench.settings, bench.pipeline, Earliest(), Latest(), run_key="r", dry_run=True, created_at="2026"
        ),
        "redrive preview": lambda: preview(bench.settings, chosen),
        "reading": lambda: list(read_range(bench.settings, bench.dead, PartitionRange(0, 0, 5, None))),
        "ledger": lambda: ensure_ledger(bench.settings, dead_letters, f"{bench.dead}.redriven"),
    }
    for name, step in steps.items():
        failure = ended(name, step)
        assert isinstance(failure, KpipeError), f"{name}: {failure!r}"
        assert failure.retriable, f"{name}: {failure!r}"

    assert ended("limits", lambda: fit_to_topics(bench.settings, [bench.topic])) is None
    assert ended("transactions", lambda: end_open_transactions(bench.settings, plan.transactional_ids, 1.0)) is None
    assert "TIMED_OUT" in repr(ended("stop", lambda: request_stop(bench.settings, plan, 1, "b", 1.0)))


def commit(bench: Bench, plan: Plan) -> None:
    """As a checkpoint does that has found out by then where everything stands."""
    with (
        committer._naming_refusals(plan),
        OffsetTransaction(bench.settings, checkpoint_id_of(plan.group), plan.topic) as transaction,
    ):
        transaction.send(plan.group, [TopicPartition(plan.topic, 0, 5)])
        transaction.commit()


def ended(name: str, step: Callable[[], object]) -> BaseException | None:
    """What a step raises. It runs in a thread of its own: a call that never comes back would hold up all tests."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001  # whatever it is, it is looked at below
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), f"{name} does not end"
    return raised[0] if raised else None


@pytest.mark.parametrize("trouble", ["restart", "crash"])
def test_a_leader_that_moves_is_asked_again(own_broker: SandboxBroker, trouble: str) -> None:
    """The client knows the leader of before, and its epoch: the broker answers FENCED_LEADER_EPOCH, however often."""
    bench = Bench.make(own_broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(3))
    with Positions(bench.settings, answer_seconds=60) as positions:
        topic = positions.topic(bench.topic)
        assert positions.latest(topic, "read_committed") == {0: 3}
        if trouble == "restart":
            own_broker.restart()
        else:
            own_broker.kill()
            own_broker.start()
        assert positions.latest(topic, "read_committed") == {0: 3}
        assert positions.earliest(topic, "read_committed") == {0: 0}
        assert positions.group_offsets("a group", bench.topic, [0]) == {}


def test_an_address_where_nobody_stays_is_not_stormed() -> None:
    """A client without backoff comes eighty times a second."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        came: list[object] = []
        server.settimeout(1.0)
        done = threading.Event()

        def turn_away() -> None:
            while not done.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                came.append(connection)
                connection.close()

        thread = threading.Thread(target=turn_away)
        thread.start()
        host, port = server.getsockname()
        with (
            Positions({"bootstrap.servers": f"{host}:{port}"}, answer_seconds=2) as positions,
            pytest.raises(KafkaUnavailableError),
        ):
            positions.topic("orders")
        done.set()
        thread.join()
    assert 2 <= len(came) < 40
