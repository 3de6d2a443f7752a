"""The gate on a real broker: poking and deferred, it sees the same and says the same."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from pipelines import Bench
from topics import commit, fill, numbered

from airflow_provider_kpipe.kafka.draining import look
from airflow_provider_kpipe.sandbox import SandboxBroker
from airflow_provider_kpipe.sensors.partitions_drained import KpipePartitionsDrainedSensor
from airflow_provider_kpipe.triggers import partitions_drained

both_modes = pytest.mark.parametrize("deferrable", [False, True], ids=["poking", "deferred"])


@pytest.fixture
def bench(broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench.make(broker.bootstrap_servers, partitions=2)
    fill(made.bootstrap, made.topic, numbered(20, partitions=2))
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": made.bootstrap}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    return made


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
        return look(*asked)

    monkeypatch.setattr(partitions_drained, "look", counted)

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
