"""Three brokers and a controller on loopback; clients reach each broker through a proxy of its own."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from airflow_provider_kpipe.sandbox.ports import free_ports
from tests.kit.wire import make_leaders
from tests.torture.node import Node
from tests.torture.proxy import Proxy, ProxyThread

BROKERS = (1, 2, 3)
CONTROLLER = 100
START_SECONDS = 90.0
QUIET: Mapping[str, Any] = {"log_level": 0, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500}


class Cluster:
    """A context manager: it serves inside the block, and nothing of it runs after."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        controller, *ports = free_ports(1 + 3 * len(BROKERS))
        self._direct = dict(zip(BROKERS, ports[0::3], strict=True))
        upstream = dict(zip(BROKERS, ports[1::3], strict=True))
        proxied = dict(zip(BROKERS, ports[2::3], strict=True))
        voters = f"{CONTROLLER}@127.0.0.1:{controller}"
        self.controller = Node(
            CONTROLLER,
            folder / "controller",
            {
                "process.roles": "controller",
                "controller.quorum.voters": voters,
                "listeners": f"CONTROLLER://127.0.0.1:{controller}",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
            },
        )
        self.brokers = {
            number: Node(
                number,
                folder / f"broker-{number}",
                {
                    "process.roles": "broker",
                    "controller.quorum.voters": voters,
                    "listeners": f"DIRECT://127.0.0.1:{self._direct[number]},PROXIED://127.0.0.1:{upstream[number]}",
                    "advertised.listeners": f"DIRECT://127.0.0.1:{self._direct[number]},"
                    f"PROXIED://127.0.0.1:{proxied[number]}",
                    "inter.broker.listener.name": "DIRECT",
                    "listener.security.protocol.map": "DIRECT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
                },
            )
            for number in BROKERS
        }
        self.proxies = {number: Proxy(proxied[number], upstream[number]) for number in BROKERS}
        self._thread = ProxyThread(*self.proxies.values())

    @property
    def direct(self) -> str:
        """Name the addresses for those who are not under test."""
        return ",".join(f"127.0.0.1:{port}" for port in self._direct.values())

    @property
    def proxied(self) -> str:
        """Name the addresses for what is under test."""
        return ",".join(f"127.0.0.1:{each.port}" for each in self.proxies.values())

    def __enter__(self) -> Self:
        self._thread.__enter__()
        try:
            cluster_id = self.controller.format()
            self.controller.start()
            for broker in self.brokers.values():
                broker.format(cluster_id)
                broker.start()
            self.await_all(START_SECONDS)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        for node in (*self.brokers.values(), self.controller):
            node.kill()
        self._thread.__exit__()
        for node in (*self.brokers.values(), self.controller):
            shutil.rmtree(node.folder / "data", ignore_errors=True)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.direct, **QUIET})

    def await_all(self, seconds: float = START_SECONDS) -> None:
        """Wait until all brokers serve, and all replicas of all partitions are in sync."""
        admin, deadline = self.admin(), time.monotonic() + seconds
        while time.monotonic() < deadline:
            for node in (*self.brokers.values(), self.controller):
                node.check()
            with contextlib.suppress(KafkaException):
                found = admin.list_topics(timeout=2.0)
                behind = [
                    each
                    for topic in found.topics.values()
                    for each in topic.partitions.values()
                    if len(each.isrs) < len(each.replicas) or each.leader < 0
                ]
                if len(found.brokers) == len(BROKERS) and not behind:
                    return
            time.sleep(0.2)
        raise TimeoutError(f"the cluster was not whole within {seconds:.0f} s; its logs are in {self.folder}")

    def create_topics(self, partitions: Mapping[str, int], config: Mapping[str, Mapping[str, str]]) -> None:
        admin = self.admin()
        topics = [
            NewTopic(name, count, replication_factor=3, config=dict(config.get(name, {})))
            for name, count in partitions.items()
        ]
        for made in admin.create_topics(topics, request_timeout=30).values():
            made.result()
        self.await_all()

    def leaders(self, prefixes: Sequence[str]) -> Iterator[tuple[str, int, int, list[int]]]:
        """Yield topic, partition, leader and replicas of topics whose names begin so."""
        for name, topic in sorted(self.admin().list_topics(timeout=5.0).topics.items()):
            if name.startswith(tuple(prefixes)):
                for number, each in sorted(topic.partitions.items()):
                    yield name, number, each.leader, list(each.replicas)

    def move_leaders(self, prefixes: Sequence[str]) -> int:
        """Make the next replica in sync the leader of each of these partitions; says how many there are."""
        wanted = {}
        for name, partition, leader, replicas in self.leaders(prefixes):
            running = [each for each in replicas if self.brokers[each].is_running and not self.brokers[each].stopped]
            if leader in running and len(running) > 1:
                following = running[(running.index(leader) + 1) % len(running)]
                wanted[name, partition] = [following, *(each for each in replicas if each != following)]
        if wanted:
            make_leaders(self._some_address(), wanted)
        return len(wanted)

    def _some_address(self) -> str:
        for number, node in self.brokers.items():
            if node.is_running and not node.stopped:
                return f"127.0.0.1:{self._direct[number]}"
        raise RuntimeError("no broker is up")
