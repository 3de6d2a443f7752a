"""The proxy between two ends that are made here: a client of ours, and a broker that answers with what it was sent."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from airflow_provider_kpipe.sandbox.ports import free_ports
from tests.torture.proxy import END_TXN, HEAD, PRODUCE, Effect, Proxy, ProxyThread, Trouble


class Echo:
    """A broker that writes down what it gets, and answers each request with its number and its body."""

    def __init__(self, port: int) -> None:
        self.got: list[bytes] = []
        self.came = threading.Semaphore(0)
        self._listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while head := stream.read(HEAD.size):
                length, _, _, number = HEAD.unpack(head)
                body = stream.read(length - HEAD.size + 4)
                self.got.append(body)
                self.came.release()
                try:
                    connection.sendall(struct.pack(">ii", 4 + len(body), number) + body)
                except OSError:
                    return


class Client:
    """A sender of requests, and reader of answers."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._stream = self._socket.makefile("rb")

    def send(self, kind: int, number: int, body: bytes, step: int | None = None) -> None:
        data = HEAD.pack(HEAD.size - 4 + len(body), kind, 3, number) + body
        for at in range(0, len(data), step or len(data)):
            self._socket.sendall(data[at : at + (step or len(data))])

    def answer(self) -> tuple[int, bytes] | None:
        """Read number and body; None where the connection has ended."""
        try:
            head = self._stream.read(8)
            if len(head) < 8:
                return None
            length, number = struct.unpack(">ii", head)
            return number, self._stream.read(length - 4)
        except ConnectionResetError:
            return None

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


@pytest.fixture
def ends() -> Iterator[tuple[Proxy, Echo, Client]]:
    port, upstream = free_ports(2)
    broker, proxy = Echo(upstream), Proxy(port, upstream)
    with ProxyThread(proxy):
        client = Client(port)
        yield proxy, broker, client
        client.close()
    broker.close()


def test_requests_come_through_whole_in_whatever_parts_they_are_sent(ends: tuple[Proxy, Echo, Client]) -> None:
    proxy, broker, client = ends
    bodies = [b"", b"a", b"x" * 300_000]
    for number, body in enumerate(bodies):
        client.send(PRODUCE, number, body, step=7 if len(body) < 10 else 50_001)
    assert [client.answer() for _ in bodies] == list(enumerate(bodies))
    assert broker.got == bodies
    assert proxy.seen == {PRODUCE: 3}


def test_a_request_that_is_cut_never_comes_to_the_broker(ends: tuple[Proxy, Echo, Client]) -> None:
    proxy, broker, client = ends
    proxy.trouble = Trouble("cut_request", frozenset({END_TXN}))
    client.send(PRODUCE, 1, b"other")
    assert client.answer() == (1, b"other")
    client.send(END_TXN, 2, b"end")
    assert client.answer() is None
    assert (broker.got, proxy.hits) == ([b"other"], 1)


def test_a_request_whose_answer_is_cut_is_done(ends: tuple[Proxy, Echo, Client]) -> None:
    proxy, broker, client = ends
    proxy.trouble = Trouble("cut_reply", frozenset({END_TXN}))
    client.send(PRODUCE, 1, b"other")
    client.send(END_TXN, 2, b"end")
    assert client.answer() == (1, b"other")
    assert client.answer() is None
    assert (broker.got, proxy.hits) == ([b"other", b"end"], 1)


def test_a_late_request_comes_after_its_client_was_cut_off(ends: tuple[Proxy, Echo, Client]) -> None:
    proxy, broker, client = ends
    proxy.trouble = Trouble("late_request", frozenset({END_TXN}), 0.2)
    client.send(END_TXN, 1, b"end")
    assert client.answer() is None
    assert broker.got == []
    assert broker.came.acquire(timeout=10)
    assert broker.got == [b"end"]


def test_a_delayed_request_holds_up_those_behind_it(ends: tuple[Proxy, Echo, Client]) -> None:
    proxy, broker, client = ends
    proxy.trouble = Trouble("delay", frozenset({END_TXN}), 0.2)
    client.send(END_TXN, 1, b"end")
    client.send(PRODUCE, 2, b"other")
    assert [client.answer(), client.answer()] == [(1, b"end"), (2, b"other")]
    assert (broker.got, proxy.hits) == ([b"end", b"other"], 1)


def test_nothing_comes_out_of_a_hole(ends: tuple[Proxy, Echo, Client]) -> None:
    proxy, broker, client = ends
    proxy.trouble = Trouble("hole")
    client.send(PRODUCE, 1, b"lost")
    assert not broker.came.acquire(timeout=0.3)
    proxy.trouble = None
    assert client.answer() is None
    assert broker.got == []


@pytest.mark.parametrize("effect", ["cut_request", "cut_reply", "late_request", "hole"])
def test_a_new_connection_is_sound_when_the_trouble_is_over(effect: Effect, ends: tuple[Proxy, Echo, Client]) -> None:
    proxy, _, client = ends
    proxy.trouble = Trouble(effect, frozenset(), 0.01)
    client.send(PRODUCE, 1, b"first")
    proxy.trouble = None if effect == "hole" else proxy.trouble
    if effect != "hole":
        assert client.answer() is None
    proxy.trouble = None
    second = Client(proxy.port)
    second.send(PRODUCE, 2, b"second")
    assert second.answer() == (2, b"second")
    second.close()
