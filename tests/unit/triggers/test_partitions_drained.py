from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from airflow_provider_kpipe.checkpointing import looking
from airflow_provider_kpipe.checkpointing.draining import PartitionDrain
from airflow_provider_kpipe.checkpointing.looking import GateLooks
from airflow_provider_kpipe.contract.documents import OtherVersionError
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.exceptions import ConnectionSettingsError, KafkaUnavailableError, UnknownTopicError
from airflow_provider_kpipe.hooks.kpipe import KpipeHook
from airflow_provider_kpipe.triggers.partitions_drained import PartitionsDrainedTrigger

TARGET = DrainTarget("orders", "orders", "read_committed", offsets=None, timestamp_ms=None, partitions=None)
DRAINED = [PartitionDrain(0, 10, 10), PartitionDrain(1, 12, 11)]
WAITING = [PartitionDrain(0, 10, 10), PartitionDrain(1, 10, 11)]
FOUND = {"partitions": {"0": {"committed": 10, "target": 10}, "1": {"committed": 12, "target": 11}}}
Look = list[PartitionDrain] | Exception
Run = Callable[..., tuple[list[Any], int]]


def trigger() -> PartitionsDrainedTrigger:
    return PartitionsDrainedTrigger("kafka_orders", TARGET.to_json(), poke_interval=0)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a trigger over these looks; gives the events it fired, and how many looks it took."""

    async def settings(self: Any) -> dict[str, str]:
        return {}

    async def events() -> list[Any]:
        return [event.payload async for event in trigger().run()]

    def run_over(*looks: Look) -> tuple[list[Any], int]:
        left = list(looks)

        async def look(self: Any, settings: Any, target: DrainTarget) -> list[PartitionDrain]:
            assert target == TARGET
            found = left.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(KpipeHook, "aget_conn", settings)
        monkeypatch.setattr(GateLooks, "look", look)
        return asyncio.run(events()), len(looks) - len(left)

    return run_over


def test_a_target_of_a_newer_version_fires_an_error() -> None:
    target = {**TARGET.to_json(), "kpipe": "DrainTarget 9.8.0", "schema_version": 2}

    async def events() -> list[Any]:
        made = PartitionsDrainedTrigger("kafka_orders", target, poke_interval=0)
        return [event.payload async for event in made.run()]

    (fired,) = asyncio.run(events())
    assert "DrainTarget.schema_version is 2, written by kpipe 9.8.0" in fired["error"]


def test_a_trigger_is_made_again_from_what_it_serializes() -> None:
    made = trigger()
    path, arguments = json.loads(json.dumps(made.serialize()))
    module_name, _, name = path.rpartition(".")
    again = getattr(import_module(module_name), name)(**arguments)
    assert type(again) is PartitionsDrainedTrigger
    assert again.serialize() == made.serialize()


def test_every_argument_is_serialized() -> None:
    parameters = inspect.signature(PartitionsDrainedTrigger).parameters
    assert trigger().serialize()[1].keys() == parameters.keys()


def test_drained_partitions_fire_one_event_with_where_they_stand(run: Run) -> None:
    assert run(DRAINED, DRAINED) == ([FOUND], 1)


def test_partitions_that_are_not_drained_are_waited_for(run: Run) -> None:
    assert run(WAITING, WAITING, DRAINED) == ([FOUND], 3)


def test_a_cluster_that_does_not_answer_is_waited_for(run: Run) -> None:
    assert run(KafkaUnavailableError("no answer"), WAITING, KafkaUnavailableError("no answer"), DRAINED) == ([FOUND], 4)


def test_an_error_that_waiting_cannot_fix_becomes_an_event(run: Run) -> None:
    error = UnknownTopicError("topic 'orders' is not on the cluster")
    assert run(WAITING, error, DRAINED) == ([{"error": "topic 'orders' is not on the cluster"}], 2)


def test_so_does_a_mark_in_the_group_that_another_version_has_written(run: Run) -> None:
    error = OtherVersionError("CommitMark.schema_version is 2, written by kpipe 9.8.0")
    assert run(WAITING, error, DRAINED) == ([{"error": str(error)}], 2)


def test_a_connection_that_is_not_there_becomes_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    async def missing(self: Any) -> dict[str, str]:
        raise ConnectionSettingsError(f"there is no Airflow connection {self.kafka_conn_id!r}")

    async def first() -> Any:
        return await anext(trigger().run())

    monkeypatch.setattr(KpipeHook, "aget_conn", missing)
    assert asyncio.run(first()).payload == {"error": "there is no Airflow connection 'kafka_orders'"}


def test_looking_does_not_hold_up_the_other_triggers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def settings(self: Any) -> dict[str, str]:
        return {"bootstrap.servers": "127.0.0.1:1"}

    def look(positions: Any, target: DrainTarget) -> list[PartitionDrain]:
        # Only another thread has no event loop that runs.
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return DRAINED

    async def first() -> Any:
        return await anext(trigger().run())

    monkeypatch.setattr(KpipeHook, "aget_conn", settings)
    monkeypatch.setattr(looking, "look_at", look)
    assert asyncio.run(first()).payload == FOUND
