"""One server of the cluster: a JVM that is started, killed and frozen by its pid."""

from __future__ import annotations

import signal
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from airflow_provider_kpipe.sandbox import process
from airflow_provider_kpipe.sandbox.errors import tail
from airflow_provider_kpipe.sandbox.jars import kafka_jars
from airflow_provider_kpipe.sandbox.java import Jvm, find_java, java_command
from airflow_provider_kpipe.sandbox.server_properties import to_text
from airflow_provider_kpipe.sandbox.storage import format_storage

SMALL = Jvm("160m", ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"))
STOP_SECONDS = 15.0

COMMON = {
    "controller.listener.names": "CONTROLLER",
    # Each topic is on all three, and two of them have to have what is acknowledged.
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    **{f"offsets.topic.{name}": value for name, value in {"replication.factor": "3", "num.partitions": "3"}.items()},
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "1",
    # Whoever is gone is noticed soon.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "6000",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.dedupe.buffer.size": "4194304",
}


class Node:
    """A broker, or the controller. `stopped` tells a frozen one."""

    def __init__(self, number: int, folder: Path, settings: Mapping[str, str]) -> None:
        self.number, self.folder = number, folder
        self.stopped = False
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        self._data = folder / "data"
        self._settings = folder / "server.properties"
        own = {"node.id": str(number), "log.dirs": str(self._data), **COMMON, **settings}
        self._settings.write_text(to_text(own))

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def format(self, cluster_id: str | None = None) -> str:
        """Prepare its folder for a cluster; the first one makes the cluster's id."""
        identity = self._data / "meta.properties"
        if cluster_id is None:
            format_storage(find_java(), kafka_jars(), self._settings)
            return dict(line.split("=", 1) for line in identity.read_text().splitlines() if "=" in line)["cluster.id"]
        self._data.mkdir()
        directory = uuid.uuid4().hex[:22]
        named = {"version": "1", "cluster.id": cluster_id, "node.id": str(self.number), "directory.id": directory}
        identity.write_text(to_text(named))
        return cluster_id

    def start(self) -> None:
        command = java_command(find_java(), SMALL, kafka_jars(), self.folder, "kafka.Kafka", [str(self._settings)])
        with self.log.open("ab") as log:
            self._process = process.start(command, folder=self.folder, output=log)
        self.stopped = False

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Leave its connections open, with nobody to answer."""
        if self.is_running and self._process:
            self._process.send_signal(signal.SIGSTOP)
            self.stopped = True

    def thaw(self) -> None:
        if self.is_running and self._process:
            self._process.send_signal(signal.SIGCONT)
        self.stopped = False

    def check(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            said = tail(self.log.read_text(errors="replace"))
            raise RuntimeError(
                f"server {self.number} ended by itself with exit code {self._process.returncode}:\n{said}"
            )
