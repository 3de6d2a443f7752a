"""The gate on a real broker: poking and deferred, it sees the same and says the same."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_provider_kpipe.checkpointing import looking
from airflow_provider_kpipe.checkpointing.draining import look_at
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.exceptions import KpipeError
from airflow_provider_kpipe.kafka.cluster import Cluster
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import SandboxBroker
from airflow_provider_kpipe.sandbox.ports import free_ports
from airflow_provider_kpipe.sensors.partitions_drained import KpipePartitionsDrainedSensor
from airflow_provider_kpipe.triggers.partitions_drained import PartitionsDrainedTrigger
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.secure import SecureBroker, make_certificates
from tests.kit.topics import commit, fill, numbered

both_modes = pytest.mark.parametrize("deferrable", [False, True], ids=["poking", "deferred"])


@pytest.fixture
def bench(broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench.make(broker.bootstrap_servers, partitions=2)
    fill(made.bootstrap, made.topic, numbered(20, partitions=2))
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": made.bootstrap}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    return made


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with SecureBroker(tmp_path_factory.mktemp("certificates")) as running:
        yield running


def connect(monkeypatch: pytest.MonkeyPatch, settings: Mapping[str, str]) -> None:
    """Let the Airflow connection say so."""
    connection = {"conn_type": "kafka", "extra": dict(settings)}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))


def gate(bench: Bench, deferrable: bool, **arguments: Any) -> KpipePartitionsDrainedSensor:
    return KpipePartitionsDrainedSensor(
        task_id="gate", pipeline=bench.pipeline, deferrable=deferrable, poke_interval=0.2, timeout=30, **arguments
    )


def look_once(sensor: KpipePartitionsDrainedSensor, context: Any = None) -> tuple[bool, Any]:
    """Whether the gate is open, and the XCom it would leave; in its own mode."""
    if not sensor.deferrable:
        found = sensor.poke(context)
        return bool(found.is_done), found.xcom_value if found.is_done else None
    try:
        return True, sensor.execute({})
    except TaskDeferred:
        return False, None


@both_modes
def test_it_opens_when_the_group_has_reached_the_plans_end(bench: Bench, deferrable: bool) -> None:
    plan = bench.plan(max_records_per_partition=6)
    sensor = gate(bench, deferrable, until=plan.to_json())
    assert look_once(sensor) == (False, None)
    bench.work(plan)
    # Stored is not committed.
    assert look_once(sensor) == (False, None)
    bench.checkpoint(plan)
    at_end = {"committed": 6, "target": 6}
    assert look_once(sensor) == (True, {"partitions": {"0": at_end, "1": at_end}})


@both_modes
def test_some_partitions_are_enough_if_only_they_are_asked_for(bench: Bench, deferrable: bool) -> None:
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {1: 10})
    assert look_once(gate(bench, deferrable)) == (False, None)
    assert look_once(gate(bench, deferrable, partitions=[1])) == (
        True,
        {"partitions": {"1": {"committed": 10, "target": 10}}},
    )


@both_modes
def test_a_moment_before_the_first_record_is_drained_at_once(bench: Bench, deferrable: bool) -> None:
    done, found = look_once(gate(bench, deferrable, until="2001-01-01T00:00:00"))
    assert done
    assert found["partitions"]["0"] == {"committed": 0, "target": 0}


@both_modes
def test_an_unknown_topic_fails_for_good(bench: Bench, deferrable: bool) -> None:
    from airflow_provider_kpipe import KafkaDestination, KafkaPipeline, KafkaSource

    lost = KafkaPipeline("lost", KafkaSource("no-such-topic"), KafkaDestination("out"))
    sensor = KpipePartitionsDrainedSensor(task_id="gate", pipeline=lost, deferrable=deferrable)
    with pytest.raises(AirflowFailException, match="'no-such-topic' is not on the cluster"):
        look_once(sensor)


@both_modes
def test_a_connection_that_is_not_there_fails_for_good(bench: Bench, deferrable: bool) -> None:
    from airflow_provider_kpipe import KafkaDestination, KafkaPipeline, KafkaSource

    lost = KafkaPipeline("lost", KafkaSource("orders", conn_id="no_such_connection"), KafkaDestination("out"))
    sensor = KpipePartitionsDrainedSensor(task_id="gate", pipeline=lost, deferrable=deferrable)
    with pytest.raises(AirflowFailException, match="no Airflow connection 'no_such_connection': create it"):
        look_once(sensor)


def test_deferred_it_waits_in_the_triggerer_until_the_group_has_moved(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = gate(bench, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute({})

    looks: list[Any] = []

    def counted(*asked: Any) -> Any:
        looks.append(asked)
        return look_at(*asked)

    monkeypatch.setattr(looking, "look_at", counted)

    async def wait_and_commit() -> Any:
        events = deferred.value.trigger.run()
        first = asyncio.create_task(anext(events))
        # It looks again only after a look that found it had to wait.
        while len(looks) < 2:
            assert not first.done()
            await asyncio.sleep(0.01)
        commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 10, 1: 10})
        return (await first).payload

    event = asyncio.run(asyncio.wait_for(wait_and_commit(), 60))
    at_end = {"committed": 10, "target": 10}
    assert sensor.execute_complete({}, event) == {"partitions": {"0": at_end, "1": at_end}}
    assert deferred.value.method_name == "execute_complete"


def with_a_wrong_password(secure: SecureBroker, _tmp_path: Path) -> dict[str, str]:
    return secure.sasl("a-wrong-one")


def with_a_wrong_authority(secure: SecureBroker, tmp_path: Path) -> dict[str, str]:
    authority, _ = make_certificates(tmp_path / "another")
    return secure.ssl(authority)


def without_login(secure: SecureBroker, _tmp_path: Path) -> dict[str, str]:
    """Of a user whose listener does not know logins."""
    return secure.reached_as("ssl", "sasl_ssl")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (with_a_wrong_password, "Invalid username or password): the cluster does not let the connection's user in"),
        (with_a_wrong_authority, "the cluster and the connection do not trust each other: fix ssl.ca.location"),
        (without_login, "the listener takes no login: set security.protocol"),
    ],
)
@pytest.mark.parametrize("looks_before", [0, 2])
def test_deferred_a_connection_that_is_refused_is_named_and_not_asked_again_and_again(
    secure: SecureBroker,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    wrong: Callable[[SecureBroker, Path], dict[str, str]],
    named: str,
    looks_before: int,
) -> None:
    """In the triggerer from the beginning, or from when somebody changes the connection."""
    bench = Bench.make(secure.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    connect(monkeypatch, secure.sasl())
    sensor = gate(bench, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute({})

    refused = wrong(secure, tmp_path)
    looks: list[bool] = []

    def counted(positions: Positions, target: DrainTarget) -> Any:
        looks.append(refused.items() <= positions.cluster._settings.items())
        return look_at(positions, target)

    monkeypatch.setattr(looking, "look_at", counted)

    async def wait_and_change() -> Any:
        if not looks_before:
            connect(monkeypatch, refused)
        first = asyncio.create_task(anext(deferred.value.trigger.run()))
        while len(looks) < looks_before:
            assert not first.done()
            await asyncio.sleep(0.01)
        connect(monkeypatch, refused)
        return (await first).payload

    event = asyncio.run(asyncio.wait_for(wait_and_change(), 60))
    assert set(event) == {"error"}
    assert named in event["error"]
    assert "a-wrong-one" not in event["error"]
    with pytest.raises(AirflowFailException) as failed:
        sensor.execute_complete({}, event)
    assert named in str(failed.value)
    # On a busy machine, a client may tell only after the bound of a look that it has tried all brokers in vain.
    assert 1 <= looks.count(True) <= 2


def test_dead_gates_hold_up_no_live_one_and_leave_nothing_open(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    looks_that_failed: list[str] = []

    def counted(*asked: Any) -> Any:
        try:
            return look_at(*asked)
        except KpipeError as error:
            # The error itself would hold the client that it came from.
            looks_that_failed.append(str(error))
            raise

    monkeypatch.setattr(looking, "look_at", counted)
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 10, 1: 10})
    target = gate(bench, deferrable=True).target().to_json()

    async def first_event(conn_id: str) -> Any:
        return (await anext(PartitionsDrainedTrigger(conn_id, target, 0.1).run())).payload

    async def all_at_once() -> Any:
        dead = [asyncio.create_task(first_event("kafka_dead")) for _ in range(40)]
        # All of them are waiting for their first look before the live one comes.
        while sum(each.gates for each in looking._lookouts) < len(dead):
            await asyncio.sleep(0.01)
        event = await asyncio.wait_for(first_event("kafka_default"), 60)
        assert len(looks_that_failed) < len(dead) / 2
        assert not any(each.done() for each in dead)
        for each in dead:
            each.cancel()
        await asyncio.gather(*dead, return_exceptions=True)
        return event

    # It takes connections, and never says a word.
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": address}}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEAD", json.dumps(connection))
        # What Airflow opens once stays open.
        asyncio.run(first_event("kafka_default"))
        wait_for(lambda: looking._lookouts == [], "the first gate to be gone")
        before = open_files()
        event = asyncio.run(all_at_once())
        wait_for(lambda: open_files() <= before, "the gates to close what they had open")

    assert event["partitions"]["0"] == {"committed": 10, "target": 10}
    assert looking._lookouts == []


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("until", ["latest", "plan"])
def test_nobody_at_the_address_is_a_mistake_in_it_until_something_says_that_it_worked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, until: str
) -> None:
    plan = bench.plan().to_json()
    (port,) = free_ports(1)
    nowhere = {"conn_type": "kafka", "extra": {"bootstrap.servers": f"127.0.0.1:{port}"}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(nowhere))
    made = Cluster.__init__
    monkeypatch.setattr(Cluster, "__init__", lambda self, given, **_: made(self, given, answer_seconds=1.0))
    sensor = gate(bench, deferrable=False, until=plan if until == "plan" else until)
    if until == "plan":
        assert look_once(sensor) == (False, None)
    else:
        with pytest.raises(AirflowFailException, match=r"Connection refused.*: connection refused"):
            look_once(sensor)
