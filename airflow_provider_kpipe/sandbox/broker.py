"""A real Kafka broker as a child process: started, stopped, paused and killed by its pid."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from airflow_provider_kpipe.sandbox import process
from airflow_provider_kpipe.sandbox.errors import SandboxError, tail
from airflow_provider_kpipe.sandbox.jars import kafka_jars
from airflow_provider_kpipe.sandbox.java import SMALL_JVM, Jvm, find_java, java_command
from airflow_provider_kpipe.sandbox.ports import choose_ports
from airflow_provider_kpipe.sandbox.server_properties import NODE_ID, server_properties, to_text
from airflow_provider_kpipe.sandbox.storage import format_storage, read_cluster_id

STOP_TIMEOUT_SECONDS = 15.0


class SandboxBroker:
    """A single-node Kafka on loopback. A context manager: it is up inside the block.

    It listens on `port`, or on a free one. All its files are in `folder`; without one it makes a temporary folder,
    which `stop` removes. On Linux the broker never outlives this process: if this process is killed, only a temporary
    folder remains.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        port: int | None = None,
        jvm: Jvm = SMALL_JVM,
        overrides: Mapping[str, str] | None = None,
        start_timeout: float = 60.0,
    ) -> None:
        self._given_folder = folder.absolute() if folder else None
        self._folder = self._given_folder
        self._port, self._jvm = port, jvm
        self._overrides = dict(overrides or {})
        self._start_timeout = start_timeout
        self._ports: tuple[int, ...] = ()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients; it stays the same over `kill`, `stop` and `start`."""
        if not self._ports:
            raise SandboxError("the broker has no address before its first start(): call start() first")
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def pid(self) -> int:
        """The pid of the running broker."""
        return self._running().pid

    @property
    def folder(self) -> Path:
        """The folder of its settings, log (`broker.log`) and data."""
        if self._folder is None:
            raise SandboxError("the broker has no folder while it is stopped: call start() first")
        return self._folder

    def start(self) -> Self:
        """Start it on the data in its folder, formatted first if new, and wait until it serves clients."""
        if self._process is not None and self._process.poll() is None:
            raise SandboxError(f"the broker is already running with pid {self._process.pid}")
        jars, java = kafka_jars(), find_java()
        self._ports = self._ports or choose_ports(self._port)
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="kpipe-sandbox-"))
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            properties = server_properties(self._folder / "data", self._ports[0], self._ports[1], self._overrides)
            settings = self._folder / "server.properties"
            settings.write_text(to_text(properties))
            identity = Path(properties["log.dirs"], "meta.properties")
            if not identity.exists():
                format_storage(java, jars, settings)
            command = java_command(java, self._jvm, jars, self._folder, "kafka.Kafka", [str(settings)])
            with self._log.open("ab") as log:
                self._process = process.start(command, folder=self._folder, output=log)
            self._wait_until_it_serves(read_cluster_id(identity))
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Shut it down cleanly, by force after a while, and remove its folder if that is temporary."""
        if self._process is not None:
            self._shut_down(self._process)
        if self._given_folder is None and self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = None

    def kill(self) -> None:
        """Kill it as a crash would; `start` then uses the same data and ports."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Shut it down cleanly and start it again with the same data and ports."""
        self._shut_down(self._running())
        self.start()

    def pause(self) -> None:
        """Freeze it: connections stay open, without an answer."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a paused broker."""
        self._running().send_signal(signal.SIGCONT)

    def wait(self) -> None:
        """Wait while the broker runs; raise when it ends by itself."""
        self._running().wait()
        raise self._died()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _log(self) -> Path:
        return self.folder / "broker.log"

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise SandboxError("the broker is not running: call start() first")
        return self._process

    def _shut_down(self, broker: subprocess.Popen[bytes]) -> None:
        broker.terminate()
        broker.send_signal(signal.SIGCONT)  # a paused broker could not obey
        try:
            broker.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            broker.kill()
            broker.wait()
        self._process = None

    def _wait_until_it_serves(self, cluster_id: str) -> None:
        """Wait until the node lists itself, which is later than its port opens."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        admin = AdminClient(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,  # otherwise it logs every refused connection on stderr
            }
        )
        deadline = time.monotonic() + self._start_timeout
        while time.monotonic() < deadline:
            if self._running().poll() is not None:
                raise self._died()
            with contextlib.suppress(KafkaException):  # the connection is refused, or the node is unknown: not up yet
                cluster = admin.describe_cluster(request_timeout=1.0).result()
                if cluster.cluster_id == cluster_id and any(node.id == NODE_ID for node in cluster.nodes):
                    return
            time.sleep(0.05)
        raise SandboxError(
            f"the broker did not serve {self.bootstrap_servers} within start_timeout={self._start_timeout} s."
            f" The end of its log:\n{self._log_tail()}"
        )

    def _log_tail(self) -> str:
        return tail(self._log.read_text(errors="replace"))

    def _died(self) -> SandboxError:
        return SandboxError(
            f"the broker on {self.bootstrap_servers} ended by itself with exit code"
            f" {self._running().returncode}; its overrides are {self._overrides}."
            f" The end of its log:\n{self._log_tail()}"
        )
