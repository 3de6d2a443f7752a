from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping

import pytest

from airflow_provider_kpipe.checkpointing import looking as module
from airflow_provider_kpipe.checkpointing.draining import PartitionDrain
from airflow_provider_kpipe.checkpointing.looking import GateLooks
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget

HERE, THERE = {"bootstrap.servers": "here:1"}, {"bootstrap.servers": "there:1"}
DRAINED = [PartitionDrain(0, 10, 10)]


class FakePositions:
    """A client of a cluster, and that cluster: it notes the groups that are forgotten."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings, self.forgotten, self.is_closed = settings, list[str](), threading.Event()
        self.cluster = self

    def forget(self, group: str) -> None:
        self.forgotten.append(group)

    def close(self) -> None:
        self.is_closed.set()


class World:
    """The clients that were opened, and the threads that looked."""

    def __init__(self) -> None:
        self.opened: list[FakePositions] = []
        self.threads: list[str] = []

    def open(self, settings: Mapping[str, str], answer_seconds: float) -> FakePositions:
        self.opened.append(FakePositions(settings))
        return self.opened[-1]

    def look_at(self, positions: FakePositions, target: DrainTarget) -> list[PartitionDrain]:
        self.threads.append(threading.current_thread().name)
        if target.topic == "gone":
            raise LookupError("no such topic")
        return DRAINED


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World()
    monkeypatch.setattr(module, "Positions", made.open)
    monkeypatch.setattr(module, "look_at", made.look_at)
    yield made
    assert module._lookouts == []


def target(group: str = "billing", topic: str = "orders") -> DrainTarget:
    return DrainTarget(group, topic, "read_committed", offsets=None, timestamp_ms=None, partitions=None)


def look(gate: GateLooks, settings: Mapping[str, str], at: DrainTarget | None = None) -> list[PartitionDrain]:
    return asyncio.run(gate.look(settings, at or target()))


def test_gates_at_one_cluster_share_a_client_until_the_last_of_them_leaves(world: World) -> None:
    with GateLooks() as one:
        with GateLooks() as other:
            assert look(one, HERE) == look(other, dict(HERE)) == DRAINED
        look(one, HERE)
        (client,) = world.opened
        assert not client.is_closed.is_set()
    assert client.is_closed.wait(60)
    assert all(each.startswith("kpipe-gates") for each in world.threads)


def test_each_cluster_has_a_client_of_its_own(world: World) -> None:
    with GateLooks() as one, GateLooks() as other:
        look(one, HERE)
        look(other, THERE)
        assert [each.settings for each in world.opened] == [HERE, THERE]


def test_a_gate_whose_connection_has_changed_looks_at_the_other_cluster(world: World) -> None:
    with GateLooks() as gate:
        look(gate, HERE)
        look(gate, THERE)
        first, second = world.opened
        assert first.is_closed.wait(60)
        assert not second.is_closed.is_set()


def test_no_group_is_held_after_a_look(world: World) -> None:
    with GateLooks() as gate:
        look(gate, HERE, target("billing"))
        with pytest.raises(LookupError, match="no such topic"):
            look(gate, HERE, target("other", "gone"))
        assert world.opened[0].forgotten == ["billing", "other"]


def test_a_gate_that_never_looked_leaves_nothing(world: World) -> None:
    with GateLooks():
        pass
    assert world.opened == []
