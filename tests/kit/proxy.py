"""Stands between clients and a broker: can hold back what a client has sent, and cut the connection it came over."""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self

from airflow_provider_kpipe.sandbox import SandboxBroker
from airflow_provider_kpipe.sandbox.ports import free_ports

PRODUCE, END_TXN = 0, 26


def broker_behind(proxy: Proxy) -> SandboxBroker:
    """It tells clients that come over the proxy to come back that way; itself and others it meets without."""
    own, controller = free_ports(2)
    overrides = {
        "listeners": f"PLAINTEXT://127.0.0.1:{own},PROXIED://127.0.0.1:{proxy.upstream},"
        f"CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{own},PROXIED://127.0.0.1:{proxy.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
    }
    broker = SandboxBroker(overrides=overrides)
    broker._ports = (own, controller)
    return broker


class Connection:
    """One of a client's, and what goes on to the broker for it."""

    def __init__(self, client: socket.socket, upstream: socket.socket) -> None:
        self.client, self.upstream = client, upstream

    def cut(self) -> None:
        """The client sees it closed; the broker does not."""
        self.client.shutdown(socket.SHUT_RDWR)

    def send(self, request: bytes) -> None:
        """Late, to the broker."""
        self.upstream.sendall(request)


class Proxy:
    """A context manager. `on_request` sees each request of a client, and says whether to hold it back."""

    def __init__(self) -> None:
        self.port, self.upstream = free_ports(2)
        self.requests: Counter[int] = Counter()
        self.on_request: Callable[[int, bytes, Connection], bool] = lambda _kind, _request, _connection: False
        self._open: list[socket.socket] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (self._listener, *self._open):
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                upstream = socket.create_connection(("127.0.0.1", self.upstream))
            except OSError:
                client.close()
                continue
            self._open += [client, upstream]
            connection = Connection(client, upstream)
            threading.Thread(target=self._forward, args=(connection,), daemon=True).start()
            threading.Thread(target=_answer, args=(connection,), daemon=True).start()

    def _forward(self, connection: Connection) -> None:
        """Request by request: four bytes of length, then what kind it is."""
        stream = connection.client.makefile("rb")
        try:
            while len(head := stream.read(4)) == 4:
                body = stream.read(struct.unpack(">i", head)[0])
                (kind,) = struct.unpack_from(">h", body)
                self.requests[kind] += 1
                if not self.on_request(kind, head + body, connection):
                    connection.upstream.sendall(head + body)
        except OSError:
            return


def _answer(connection: Connection) -> None:
    try:
        while data := connection.upstream.recv(65_536):
            connection.client.sendall(data)
    except OSError:
        return
    finally:
        connection.client.close()
