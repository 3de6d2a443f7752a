"""Connections that no cluster takes: each is named as what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_provider_kpipe.exceptions import (
    ConnectionSettingsError,
    KafkaUnavailableError,
    KpipeError,
    UnreachableError,
)
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import create_topics
from airflow_provider_kpipe.sandbox.ports import free_ports
from tests.kit import proxy
from tests.kit.secure import SecureBroker, make_certificates

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
Connection = Callable[[SecureBroker], dict[str, str]]

SPEAK_TLS = "closes connections without TLS, or no broker is behind it: set security.protocol of the connection"
SPEAK_NO_TLS = "speaks no TLS: set security.protocol of the connection to plaintext or sasl_plaintext"
LOG_IN = "closes connections without login: set security.protocol of the connection to sasl_plaintext or sasl_ssl"
DO_NOT_LOG_IN = "takes no login: set security.protocol of the connection to plaintext or ssl"
# By what the listener speaks, and what the connection takes it for.
MISTAKEN = {
    ("ssl", "plaintext"): (UnreachableError, SPEAK_TLS),
    ("ssl", "sasl_plaintext"): (UnreachableError, SPEAK_TLS),
    ("sasl_ssl", "plaintext"): (UnreachableError, SPEAK_TLS),
    ("sasl_ssl", "sasl_plaintext"): (UnreachableError, SPEAK_TLS),
    ("plaintext", "ssl"): (UnreachableError, SPEAK_NO_TLS),
    ("plaintext", "sasl_ssl"): (UnreachableError, SPEAK_NO_TLS),
    ("sasl_plaintext", "ssl"): (UnreachableError, SPEAK_NO_TLS),
    ("sasl_plaintext", "sasl_ssl"): (UnreachableError, SPEAK_NO_TLS),
    ("sasl_plaintext", "plaintext"): (UnreachableError, LOG_IN),
    ("sasl_ssl", "ssl"): (UnreachableError, LOG_IN),
    ("plaintext", "sasl_plaintext"): (ConnectionSettingsError, DO_NOT_LOG_IN),
    ("ssl", "sasl_ssl"): (ConnectionSettingsError, DO_NOT_LOG_IN),
}


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
    assert "): the cluster does not let the connection's user in: fix its login and password" in said
    assert "a-wrong-one" not in said


def test_a_wrong_mechanism(secure: SecureBroker) -> None:
    said = assert_refused({**secure.sasl(), "sasl.mechanism": "SCRAM-SHA-256"}, ConnectionSettingsError)
    assert "Unsupported SASL mechanism" in said
    assert "sasl.mechanism" in said


@pytest.mark.parametrize("asked", [SASL_HANDSHAKE, SASL_AUTHENTICATE], ids=["handshake", "password"])
def test_a_broker_that_goes_in_the_middle_of_the_login_may_come_back(secure: SecureBroker, asked: int) -> None:
    def goes(kind: int, _request: bytes, connection: proxy.Connection) -> bool:
        if kind == asked:
            connection.cut()
        return kind == asked

    with proxy.Proxy() as between:
        between.upstream = secure.port_of("sasl_plaintext")
        between.on_request = goes
        settings = {**secure.sasl(), "bootstrap.servers": between.address}
        said = assert_refused(settings, KafkaUnavailableError, answer_seconds=5)
    assert between.requests[asked] > 1
    assert "): the broker was gone before it answered the login" in said


def test_a_wrong_authority(secure: SecureBroker, another_authority: Path) -> None:
    said = assert_refused(secure.ssl(another_authority), ConnectionSettingsError)
    assert "certificate verify failed" in said
    assert "): the cluster and the connection do not trust each other: fix ssl.ca.location" in said


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
    assert "): the host name cannot be resolved: fix bootstrap.servers of the connection" in said


def test_a_refused_port() -> None:
    (port,) = free_ports(1)
    said = assert_refused({"bootstrap.servers": f"127.0.0.1:{port}"}, UnreachableError, answer_seconds=2)
    assert "Connection refused" in said
    assert "): connection refused: see that the cluster is up, and that host and port in bootstrap.servers" in said


@pytest.fixture(scope="module")
def mistaken(secure: SecureBroker) -> dict[tuple[str, str], str]:
    """Make each mistake at once: most are waited for, as a proxy hangs up too while its broker is just starting."""

    def said_of(mistake: tuple[str, str]) -> str:
        return assert_refused(secure.reached_as(*mistake), MISTAKEN[mistake][0], answer_seconds=10)

    with ThreadPoolExecutor(len(MISTAKEN)) as threads:
        return dict(zip(MISTAKEN, threads.map(said_of, MISTAKEN), strict=True))


@pytest.mark.parametrize("mistake", MISTAKEN, ids=lambda each: f"{each[0]} taken for {each[1]}")
def test_a_listener_of_another_protocol(
    secure: SecureBroker, mistaken: dict[tuple[str, str], str], mistake: tuple[str, str]
) -> None:
    said = mistaken[mistake]
    assert secure.reached_as(*mistake)["bootstrap.servers"] in said
    assert f"): the listener {MISTAKEN[mistake][1]}" in said


def test_a_listener_that_is_taken_for_what_it_is(secure: SecureBroker) -> None:
    for protocol in ("plaintext", "sasl_plaintext", "ssl", "sasl_ssl"):
        with Positions(secure.reached_as(protocol, protocol)) as positions:
            assert positions.topic("orders").partitions == (0,)


def assert_refused(settings: dict[str, str], kind: type[KpipeError], answer_seconds: float = 60) -> str:
    """What is said to whoever asks."""
    with Positions(settings, answer_seconds=answer_seconds) as positions, pytest.raises(KpipeError) as refused:
        positions.topic("orders")
    assert type(refused.value) is kind, refused.value
    return str(refused.value)
