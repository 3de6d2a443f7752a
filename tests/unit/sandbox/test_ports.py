"""Ports for what is about to listen."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from airflow_provider_kpipe.sandbox import SandboxError, ports
from airflow_provider_kpipe.sandbox.ports import choose_ports, free_ports


def connections_from(first: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the system say that it gives the ports from there to connections."""
    said = folder / "range"
    said.write_text(f"{first}\t60999\n")
    monkeypatch.setattr(ports, "_RANGE_OF_CONNECTIONS", said)


def test_none_is_one_that_a_connection_could_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connections_from(15_100, tmp_path, monkeypatch)
    found = free_ports(20)
    assert len(set(found)) == 20
    assert all(15_000 <= each < 15_100 for each in found)


def test_one_that_is_listened_on_is_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = free_ports(1)
    connections_from(first + 1, tmp_path, monkeypatch)
    monkeypatch.setattr(ports, "_FIRST", first)
    with socket.create_server(("127.0.0.1", first)):
        assert first not in free_ports(1)
    assert free_ports(1) == (first,)


def test_ports_are_found_even_if_all_are_for_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connections_from(1_024, tmp_path, monkeypatch)
    assert len(set(free_ports(3))) == 3


def test_ports_are_found_without_the_range_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_RANGE_OF_CONNECTIONS", tmp_path / "nothing")
    assert all(each < 32_768 for each in free_ports(2))


def test_a_port_that_is_wished_for_is_the_clients() -> None:
    (wished,) = free_ports(1)
    clients, own = choose_ports(wished)
    assert clients == wished != own
    assert len(set(choose_ports(None))) == 2


def test_one_that_is_taken_is_refused_by_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        with pytest.raises(SandboxError, match=f"port {taken} cannot be listened on .*choose another"):
            choose_ports(taken)
