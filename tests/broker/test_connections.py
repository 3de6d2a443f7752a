"""Connections that no cluster takes: each is named as what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from secure import SecureBroker, make_certificates

from airflow_provider_kpipe.exceptions import ConnectionSettingsError, KpipeError, UnreachableError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import create_topics
from airflow_provider_kpipe.sandbox.broker import free_ports

Connection = Callable[[SecureBroker], dict[str, str]]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with SecureBroker(tmp_path_factory.mktemp("certificates")) as running:
        create_topics(running.bootstrap_servers, "orders")
        yield running


@pytest.fixture
def another_authority(tmp_path: Path) -> Path:
    authority, _ = make_certificates(tmp_path / "another")
    return authority


@pytest.mark.parametrize(
    "connection",
    [SecureBroker.sasl, SecureBroker.ssl, SecureBroker.sasl_ssl],
    ids=["password", "authority", "password and authority"],
)
def test_the_right_ones_are_let_in(secure: SecureBroker, connection: Connection) -> None:
    with Positions(connection(secure)) as positions:
        assert positions.topic("orders").partitions == (0,)
        assert positions.group_offsets("orders", "orders", [0]) == {}


@pytest.mark.parametrize("connection", [SecureBroker.sasl, SecureBroker.sasl_ssl], ids=["in the open", "encrypted"])
def test_a_wrong_password(secure: SecureBroker, connection: Callable[..., dict[str, str]]) -> None:
    said = assert_refused(connection(secure, "a-wrong-one"), ConnectionSettingsError)
    assert "Authentication failed: Invalid username or password" in said
    assert "): the cluster does not let the connection's user in: mend its login and password" in said
    assert "a-wrong-one" not in said


def test_a_wrong_mechanism(secure: SecureBroker) -> None:
    said = assert_refused({**secure.sasl(), "sasl.mechanism": "SCRAM-SHA-256"}, ConnectionSettingsError)
    assert "Unsupported SASL mechanism" in said
    assert "sasl.mechanism" in said


def test_a_wrong_authority(secure: SecureBroker, another_authority: Path) -> None:
    said = assert_refused(secure.ssl(another_authority), ConnectionSettingsError)
    assert "certificate verify failed" in said
    assert "): the cluster and the connection do not trust each other: mend ssl.ca.location" in said


def test_a_host_that_the_certificate_does_not_name(secure: SecureBroker) -> None:
    settings = secure.ssl()
    elsewhere = settings["bootstrap.servers"].replace("127.0.0.1", "localhost")
    assert "have to name these hosts" in assert_refused(
        {**settings, "bootstrap.servers": elsewhere}, ConnectionSettingsError
    )


def test_an_unknown_host() -> None:
    settings = {"bootstrap.servers": "no-such-host.invalid:9092"}
    said = assert_refused(settings, UnreachableError, answer_seconds=2)
    assert "Failed to resolve 'no-such-host.invalid:9092'" in said
    assert "): no such host is known: mend bootstrap.servers of the connection" in said


def test_a_refused_port() -> None:
    (port,) = free_ports(1)
    said = assert_refused({"bootstrap.servers": f"127.0.0.1:{port}"}, UnreachableError, answer_seconds=2)
    assert "Connection refused" in said
    assert "): nobody listens there: see that the cluster is up, and that host and port in bootstrap.servers" in said


def assert_refused(settings: dict[str, str], kind: type[KpipeError], answer_seconds: float = 60) -> str:
    """What is said to whoever asks."""
    with Positions(settings, answer_seconds=answer_seconds) as positions, pytest.raises(KpipeError) as refused:
        positions.topic("orders")
    assert type(refused.value) is kind, refused.value
    return str(refused.value)
