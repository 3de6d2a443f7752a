"""The configuration of a single node, both broker and controller, on loopback."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

NODE_ID = 1


def server_properties(data: Path, port: int, controller_port: int, overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the node's settings; `overrides` come last and win."""
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(data),
        # One node can hold only one replica, and internal topics with one partition start quickest.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        # After a kill, the node rejoins only when its old session has expired: 9 seconds by default.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # A consumer does not wait for others to join its group.
        "group.initial.rebalance.delay.ms": "0",
        # A misspelt topic is an error, not a new topic.
        "auto.create.topics.enable": "false",
        # The broker keeps records with old timestamps, which a backfill reads.
        "log.retention.ms": "-1",
        # The default is 128 MB, half of the small heap, allocated at start.
        "log.cleaner.dedupe.buffer.size": "4194304",
        **overrides,
    }


def to_text(properties: Mapping[str, str]) -> str:
    """Format the text of a Java properties file."""
    lines = (f"{name}={value}" for name, value in properties.items())
    return "\n".join(line.replace("\\", "\\\\") for line in lines) + "\n"
