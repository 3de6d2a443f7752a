"""A second broker beside the first one, for topics with two replicas."""

from __future__ import annotations

import base64
import json
import uuid
from pathlib import Path

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from jobs import wait_for

from airflow_provider_kpipe.sandbox import SandboxBroker
from airflow_provider_kpipe.sandbox.broker import free_ports
from airflow_provider_kpipe.sandbox.storage import read_cluster_id
from airflow_provider_kpipe.sandbox.tools import run_tool

FIRST, SECOND = 1, 2


class SecondBroker(SandboxBroker):
    """Holds replicas, and has no say in the cluster: it may come and go."""

    def __init__(self, folder: Path, first: SandboxBroker) -> None:
        ports = free_ports(2)
        listener = f"PLAINTEXT://127.0.0.1:{ports[0]}"
        voters = dict(
            line.split("=", 1) for line in (first.folder / "server.properties").read_text().splitlines() if "=" in line
        )["controller.quorum.voters"]
        super().__init__(
            folder,
            overrides={
                "process.roles": "broker",
                "node.id": str(SECOND),
                "controller.quorum.voters": voters,
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


def create_replicated(bootstrap: str, name: str) -> None:
    """A topic that takes nothing unless both brokers have it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(name, 1, replica_assignment=[[FIRST, SECOND]], config={"min.insync.replicas": "2"})
    admin.create_topics([topic])[name].result(30)
    await_replicas(bootstrap, name, 2)


def await_replicas(bootstrap: str, name: str, many: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wait_for(
        lambda: (
            [len(each.isrs) for each in admin.list_topics(name, timeout=30).topics[name].partitions.values()] == [many]
        ),
        f"{many} replicas in sync",
    )


def lead(bootstrap: str, folder: Path, *topics: str) -> None:
    """Have the second broker lead partition 0 of each of them, and the first one follow."""
    asked = folder / "reassignment.json"
    moves = [{"topic": each, "partition": 0, "replicas": [SECOND, FIRST]} for each in topics]
    asked.write_text(json.dumps({"version": 1, "partitions": moves}))
    run_tool(
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        ["--bootstrap-server", bootstrap, "--reassignment-json-file", str(asked), "--execute"],
    )
    for each in topics:
        await_replicas(bootstrap, each, 2)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(each, 0) for each in topics]).result(30)
    wait_for(
        lambda: {admin.list_topics(each, timeout=30).topics[each].partitions[0].leader for each in topics} == {SECOND},
        "the second broker to lead",
    )
