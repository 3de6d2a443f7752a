"""Two brokers: one that stays, and one that holds replicas and may go."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from airflow_provider_kpipe.sandbox import SandboxBroker
from airflow_provider_kpipe.sandbox.ports import free_ports
from airflow_provider_kpipe.sandbox.storage import read_cluster_id
from tests.kit.jobs import wait_for
from tests.kit.wire import make_leaders

FIRST, SECOND = 1, 2
COORDINATORS = ("__consumer_offsets", "__transaction_state")
_ON_BOTH = {"offsets.topic.replication.factor": "2", "transaction.state.log.replication.factor": "2"}


class SecondBroker(SandboxBroker):
    """It has no say in the cluster, which goes on without it."""

    def __init__(self, folder: Path, first: SandboxBroker) -> None:
        ports = free_ports(2)
        listener = f"PLAINTEXT://127.0.0.1:{ports[0]}"
        super().__init__(
            folder,
            overrides={
                **_ON_BOTH,
                "process.roles": "broker",
                "node.id": str(SECOND),
                "controller.quorum.voters": _properties(first.folder / "server.properties")["controller.quorum.voters"],
                "listeners": listener,
                "advertised.listeners": listener,
            },
        )
        self._ports = ports
        identity = {
            "version": "1",
            "cluster.id": read_cluster_id(first.folder / "data" / "meta.properties"),
            "node.id": str(SECOND),
            "directory.id": base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="),
        }
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "meta.properties").write_text("".join(f"{name}={it}\n" for name, it in identity.items()))


def _properties(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)


@contextmanager
def two_brokers(folder: Path) -> Iterator[tuple[SandboxBroker, SecondBroker]]:
    with SandboxBroker(folder / "first", overrides=_ON_BOTH) as first, SecondBroker(folder / "second", first) as second:
        await_brokers(first.bootstrap_servers)
        yield first, second


def await_brokers(bootstrap: str) -> None:
    """Wait until both are known: the first one hears of the second a moment after that one serves."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wait_for(lambda: set(admin.list_topics(timeout=30).brokers) == {FIRST, SECOND}, "both brokers")


def create(bootstrap: str, *names: str, on: Sequence[int], needing: int = 1) -> None:
    """Topics whose leader is the first of these brokers, and that take what so many of them have."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"min.insync.replicas": str(needing)}
    topics = [NewTopic(name, 1, replica_assignment=[list(on)], config=config) for name in names]
    for made in admin.create_topics(topics).values():
        made.result(30)
    await_in_sync(bootstrap, names, len(on))


def await_in_sync(bootstrap: str, names: Collection[str], many: int) -> None:
    """Wait until so many replicas of each of these topics are in sync, and one of them leads."""

    def are_there() -> bool:
        try:
            known = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).topics
        except KafkaException:
            return False
        found = [known[name].partitions[0] for name in names if name in known and known[name].partitions]
        return [len(each.isrs) for each in found if each.leader in each.isrs] == [many] * len(names)

    wait_for(are_there, f"{many} replicas in sync")


def let_lead(bootstrap: str, *names: str) -> None:
    """Make the second broker the leader of these topics, which both have."""
    await_in_sync(bootstrap, names, 2)
    make_leaders(bootstrap, {(name, 0): [SECOND, FIRST] for name in names})
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def leads() -> bool:
        topics = admin.list_topics(timeout=30).topics
        return {topics[name].partitions[0].leader for name in names} == {SECOND}

    wait_for(leads, "the second broker to lead")
