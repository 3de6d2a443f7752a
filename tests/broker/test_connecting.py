"""Clients connect at once to a broker that is there, back off from one that is gone, and tell of it in one line."""

from __future__ import annotations

import ast
import importlib
import logging
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.contract import client_log
from airflow_provider_kpipe.contract.connecting import CONNECTING, connecting
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.exceptions import KpipeError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.planning import ranges as planner
from airflow_provider_kpipe.planning.truncation import truncated
from airflow_provider_kpipe.running.stop_requests import request_stop
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from airflow_provider_kpipe.sandbox.ports import free_ports
from airflow_provider_kpipe.transactions import offset_transaction, sequence
from airflow_provider_kpipe.transactions.left_open import end_open_transactions
from airflow_provider_kpipe.transactions.sequence import draw_number
from kpipe_engine.client_settings import consumer_settings, log_error, reader_of
from kpipe_engine.reading.held_offsets import held_offsets
from kpipe_engine.reading.lone_fetch import fetch_alone
from kpipe_engine.reading.planned_topic import PlannedTopic
from kpipe_engine.stop_signal import KafkaStopSignal, StopSignal
from kpipe_engine.supervision.silence import silent_clusters
from kpipe_engine.wiring import build_worker
from kpipe_engine.writing.missing_replicas import reason_with_replicas
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.plans import plan_of
from tests.kit.topics import fill, numbered

CHECKOUT = Path(__file__).parents[2]
ROOMS = {
    "airflow_provider_kpipe.kafka": CHECKOUT / "airflow_provider_kpipe" / "kafka",
    "kpipe_engine": CHECKOUT / "spark_jobs" / "kpipe_engine",
}
KINDS: dict[str, Any] = {"Consumer": Consumer, "Producer": Producer, "AdminClient": AdminClient}
SECONDS = 4.0
REFUSED_SECONDS = 10.0
# A handful at once, and then one or two a second. It was 80 a second.
MOST_TRIES = 25


class Tries:
    """In the place of a client's log."""

    def __init__(self) -> None:
        self.count = 0

    def log(self, _level: int, _form: str, facility: str, _client: str, text: str) -> None:
        self.count += facility == "CONNECT" and text.endswith("connecting")


@pytest.fixture
def gone() -> Any:
    with SandboxBroker() as running:
        yield running


def test_a_broker_that_is_gone_is_tried_ever_less(gone: SandboxBroker) -> None:
    create_topics(gone.bootstrap_servers, "orders", partitions=1)
    tries = Tries(), Tries()
    settings = [
        {
            **connecting({"bootstrap.servers": gone.bootstrap_servers, "error_cb": lambda _error: None}),
            "debug": "broker",
            "logger": each,
        }
        for each in tries
    ]
    consumer, producer = Consumer({**settings[0], "group.id": "readers"}), Producer(settings[1])
    held_offsets(consumer, "readers", [TopicPartition("orders", 0)], 30)
    consumer.assign([TopicPartition("orders", 0, 0)])
    producer.produce("orders", b"x")
    assert producer.flush(30) == 0

    gone.kill()
    for each in tries:
        each.count = 0
    producer.produce("orders", b"y")
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        producer.poll(0.05)
        consumer.consume(10, 0.05)

    assert all(0 < each.count <= MOST_TRIES for each in tries), [each.count for each in tries]
    consumer.close()
    producer.purge()
    producer.flush(0)


def opened_in_the_sources() -> dict[str, set[str]]:
    """The kinds of client that each module opens, or hands to whoever opens it."""
    found: dict[str, set[str]] = defaultdict(set)
    for room, folder in ROOMS.items():
        for file in folder.glob("*.py"):
            calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
            names = {ast.unparse(each) for call in calls for each in (call.func, *call.args)}
            found[f"{room}.{file.stem}"] |= names & KINDS.keys()
    return {module: kinds for module, kinds in found.items() if kinds}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Settings of the clients that are opened from now on, by module and kind."""
    noted: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))

    def noting(module: str, kind: str) -> type:
        def note(self: Any, settings: dict[str, Any]) -> None:
            noted[module][kind].append(dict(settings))
            KINDS[kind].__init__(self, settings)

        return type(kind, (KINDS[kind],), {"__init__": note})

    for module, kinds in opened_in_the_sources().items():
        for kind in kinds:
            monkeypatch.setattr(importlib.import_module(module), kind, noting(module, kind))
    return noted


def test_each_client_backs_off_and_has_a_logger(
    broker: SandboxBroker,
    opened: dict[str, dict[str, list[dict[str, Any]]]],
    make_topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planner, "SHORTEST_PIECE", 25)
    scaling = PartitionScaling("relax_ordering_within_partition", events_topic=make_topic("events"))
    bench = Bench.make(broker.bootstrap_servers, scaling=scaling)
    fill(bench.bootstrap, bench.topic, numbered(100))
    plan, newer = bench.plan(run_key="older"), bench.plan(run_key="newer")
    claim(bench, bench.attempt(plan))
    job = bench.attempt(newer)
    claim(bench, job)
    end_open_transactions(bench.settings, ["nobody's"], 30.0)
    with Positions(bench.settings) as positions:
        assert truncated(positions.cluster, bench.pipeline.group, bench.topic, {0: (1, 0)}) == {}
    request_stop(bench.settings, newer, job.attempt, "enough")
    with KafkaStopSignal(job, bench.settings) as stop_signal:
        wait_for(lambda: stop_signal.is_set, "the request to stop")
    assert fetch_alone(consumer_settings(bench.settings, plan, 0), TopicPartition(bench.topic, 0, 0), 1)
    assert silent_clusters(bench.kafka) == []
    PlannedTopic(bench.settings, newer).check()
    over = KafkaException(KafkaError(KafkaError.CONCURRENT_TRANSACTIONS))
    assert bench.topic not in reason_with_replicas(over, bench.settings, [bench.topic])

    found = {module: set(kinds) for module, kinds in opened.items()}
    assert found == opened_in_the_sources()
    for module, kinds in opened.items():
        for kind, clients in kinds.items():
            for settings in clients:
                assert CONNECTING.items() <= settings.items(), (module, kind)
                assert "logger" in settings, (module, kind)


def claim(bench: Bench, job: Job) -> None:
    """Begin with the first of several pieces; a newer run fences all that an older one may have begun."""
    pieces: Any = job.plan.ranges[0].pieces
    worker = build_worker(job, bench.kafka, [pieces[0]], StopSignal(), 0)
    worker.open()
    worker.close()


def test_however_many_clients_find_a_port_refused_it_is_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Both sides ask at once, in all the ways they have."""
    caplog.set_level(logging.INFO, client_log.log.name)
    monkeypatch.setattr(client_log, "CAUSES", client_log.Causes())
    for module in (sequence, offset_transaction):
        monkeypatch.setattr(module, "ANSWER_SECONDS", REFUSED_SECONDS / 2)
    (port,) = free_ports(1)
    settings = {"bootstrap.servers": f"127.0.0.1:{port}"}

    asked = ways_to_ask(settings)
    with ThreadPoolExecutor(len(asked)) as threads:
        list(threads.map(refused, asked))

    told = Counter(each.getMessage().partition(" (after ")[0] for each in caplog.records)
    # A client of an earlier test may still be told that its broker is gone.
    (line,) = [each for each in told.elements() if "Connection refused" in each and f":{port}/" in each]
    assert str(port) in line
    assert max(told.values()) == 1
    assert "rdkafka" not in capfd.readouterr().err


def ways_to_ask(settings: dict[str, str]) -> list[Callable[[], Any]]:
    def of_cluster(question: Callable[[Positions], Any]) -> None:
        with Positions(settings, answer_seconds=REFUSED_SECONDS) as positions:
            question(positions)

    return [
        lambda: of_cluster(lambda positions: positions.topic("orders")),
        lambda: of_cluster(lambda positions: positions.group_offsets("orders", "orders", [0])),
        lambda: draw_number(settings, "orders", "orders"),
        lambda: request_stop(settings, plan_of(PartitionRange(0, 0, 9, None)), 1, "enough", REFUSED_SECONDS),
        lambda: end_open_transactions(settings, ["a", "b", "c"], REFUSED_SECONDS),
        lambda: of_cluster(lambda positions: truncated(positions.cluster, "orders", "orders", {0: (1, 0)})),
        lambda: reader_of(settings, "orders").committed([TopicPartition("orders", 0)], timeout=REFUSED_SECONDS),
        lambda: polled(Consumer({**connecting(settings), "group.id": "orders"})),
        lambda: polled(Producer(connecting({**settings, "error_cb": log_error}))),
    ]


def polled(client: Consumer | Producer) -> None:
    until = time.monotonic() + REFUSED_SECONDS
    while time.monotonic() < until:
        client.poll(0.1)
    threading.Thread(target=client.close, daemon=True).start()


def refused(ask: Callable[[], Any]) -> None:
    with suppress(KafkaException, KpipeError):
        ask()
