"""A cluster that stops answering, and one that is killed, and never come back: each question has an end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from airflow.sdk.exceptions import AirflowException
from confluent_kafka import TopicPartition

from airflow_provider_kpipe.checkpointing import committer
from airflow_provider_kpipe.checkpointing.draining import look
from airflow_provider_kpipe.contract.kafka_names import checkpoint_id_of
from airflow_provider_kpipe.contract.offsets.limits import Earliest, Latest
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.contract.redrive.redrive import Selection
from airflow_provider_kpipe.exceptions import KafkaUnavailableError, KpipeError
from airflow_provider_kpipe.kafka import bounded_reader, bounds, open_transactions, topic_limits
from airflow_provider_kpipe.kafka.bounded_reader import read_range
from airflow_provider_kpipe.kafka.cluster import Cluster
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.kafka.topic_limits import fit_to_topics
from airflow_provider_kpipe.planning.truncation import truncated
from airflow_provider_kpipe.redriving.ledger_topic import ensure_ledger
from airflow_provider_kpipe.redriving.planning import check_redrive_topics, make_redrive_plan
from airflow_provider_kpipe.redriving.preview import preview
from airflow_provider_kpipe.redriving.selection import check_selection
from airflow_provider_kpipe.running.job_run import JobRun
from airflow_provider_kpipe.running.stop_requests import request_stop
from airflow_provider_kpipe.sandbox import SandboxBroker
from airflow_provider_kpipe.spark.submission import Submission
from airflow_provider_kpipe.transactions import offset_transaction, sequence
from airflow_provider_kpipe.transactions.left_open import end_open_transactions
from airflow_provider_kpipe.transactions.offset_transaction import OffsetTransaction
from airflow_provider_kpipe.transactions.sequence import draw_number
from tests.kit.ends import ended
from tests.kit.pipelines import Bench
from tests.kit.redrives import order
from tests.kit.topics import fill, numbered


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
    monkeypatch.setattr(open_transactions, "NAMING_SECONDS", 1.0)
    # Also of one that is open by then.
    brief = property(lambda self: 1.0, lambda self, seconds: None)
    monkeypatch.setattr(Cluster, "answer_seconds", brief, raising=False)


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
    leave(own_broker, trouble)
    shorten_bounds(monkeypatch)

    steps: dict[str, Callable[[], object]] = {
        "plan": lambda: bench.plan("another"),
        "checkpoint": lambda: bench.checkpoint(plan),
        "attempt": lambda: bench.attempt(plan),
        "commit": lambda: commit(bench, plan),
        "gate": lambda: look(bench.settings, target),
        "gate on a plan": lambda: look(bench.settings, target, plan),
        "truncation": lambda: truncated(Cluster(bench.settings), plan.group, bench.topic, {0: (5, 0)}),
        "redrive topics": lambda: check_redrive_topics(bench.settings, bench.settings, bench.pipeline, chosen.redrive),
        "redrive planning": lambda: redrive_plan(bench, dry_run=False),
        "redrive planning of a dry run": lambda: redrive_plan(bench, dry_run=True),
        "number": lambda: draw_number(bench.settings, plan.working_group, bench.topic),
        "redrive selection": lambda: check_selection(bench.settings, chosen.plan, Selection(exception_class="Nobody")),
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


@pytest.mark.parametrize("trouble", ["killed", "stopped"])
def test_a_run_whose_cluster_goes_while_its_job_is_at_work_has_an_end(
    own_broker: SandboxBroker, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's own end is one thing; what is asked after it is another."""
    bench = Bench.make(own_broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    run = JobRun(
        bench.attempt(bench.plan()),
        bench.kafka,
        conn_id="spark_default",
        spark_conf=None,
        py_files=(),
        submit_options=None,
        progress_interval=0.1,
    )
    submitted: list[Submission] = []

    def submit(submission: Submission) -> None:
        submitted.append(submission)
        leave(own_broker, trouble)
        shorten_bounds(monkeypatch)
        raise AirflowException("Spark has failed")

    monkeypatch.setattr(Submission, "run", submit)

    failure = ended("run", lambda: run.run(lambda progress: None))

    assert len(submitted) == 1
    assert isinstance(failure, KafkaUnavailableError)
    assert "about group" in str(failure)
    assert ended("stop", run.stop) is None


def leave(broker: SandboxBroker, trouble: str) -> None:
    if trouble == "killed":
        broker.kill()
    else:
        broker.pause()


def redrive_plan(bench: Bench, *, dry_run: bool) -> Plan:
    return make_redrive_plan(
        bench.settings, bench.pipeline, Earliest(), Latest(), run_key="r", dry_run=dry_run, created_at="2026"
    )


def commit(bench: Bench, plan: Plan) -> None:
    """As a checkpoint does that has found out by then where everything stands."""
    with (
        committer._naming_refusals(plan),
        OffsetTransaction(bench.settings, checkpoint_id_of(plan.group), plan.topic) as transaction,
    ):
        transaction.send(plan.group, [TopicPartition(plan.topic, 0, 5)])
        transaction.commit()


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


def test_an_address_where_records_came_from_is_right(
    own_broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench.make(own_broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(1))
    messages = read_range(bench.settings, bench.topic, PartitionRange(0, 0, 9, None))
    assert next(messages).offset() == 0
    own_broker.kill()
    monkeypatch.setattr(bounded_reader, "STALL_SECONDS", 3.0)
    with pytest.raises(KafkaUnavailableError) as failure:
        next(messages)
    assert type(failure.value) is KafkaUnavailableError


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
