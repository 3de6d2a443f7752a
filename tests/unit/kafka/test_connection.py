from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_kpipe.exceptions import ConnectionSettingsError
from airflow_provider_kpipe.kafka.connection import client_settings, secrets_of

HUSH = "hush"


def settings_of(
    extra: dict[str, Any] | None = None,
    *,
    host: str | None = None,
    port: int | None = None,
    login: str | None = None,
    word: str | None = None,
) -> dict[str, str]:
    return client_settings("kafka", host=host, port=port, login=login, password=word, extra=extra or {})


def with_broker(**extra: Any) -> dict[str, Any]:
    return {"bootstrap.servers": "broker:9092", **extra}


PASSED_ON = [
    "security.protocol",
    "client.id",
    "client.rack",
    "client.dns.lookup",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.username",
    "sasl.password",
    "sasl.kerberos.service.name",
    "sasl.oauthbearer.client.secret",
    "ssl.ca.location",
    "https.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.key.pem",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.endpoint.identification.algorithm",
    "ssl.cipher.suites",
    "enable.ssl.certificate.verification",
    "socket.timeout.ms",
    "broker.address.family",
    "reconnect.backoff.max.ms",
    "enable.sparse.connections",
    "retry.backoff.ms",
    "message.max.bytes",
    "fetch.wait.max.ms",
    "fetch.max.bytes",
    "max.partition.fetch.bytes",
    "queued.max.messages.kbytes",
    "check.crcs",
    "linger.ms",
    "queue.buffering.max.kbytes",
    "batch.size",
    "compression.level",
    "request.timeout.ms",
    "delivery.timeout.ms",
    "log_level",
]


@pytest.mark.parametrize("name", PASSED_ON)
def test_settings_for_access_and_for_tuning_are_passed_on(name: str) -> None:
    assert settings_of(with_broker(**{name: "x"})) == with_broker(**{name: "x"})


@pytest.mark.parametrize(
    "name",
    [
        "group.id",
        "auto.offset.reset",
        "enable.auto.commit",
        "isolation.level",
        "acks",
        "enable.idempotence",
        "transactional.id",
        "transaction.timeout.ms",
        "compression.type",
        "partitioner",
        "session.timeout.ms",
    ],
)
def test_settings_of_the_pipeline_are_left_out(name: str) -> None:
    assert settings_of(with_broker(**{name: "x"})) == with_broker()


def test_settings_of_the_pipeline_are_left_out_with_any_value() -> None:
    assert settings_of(with_broker(acks=None, partitioner={})) == with_broker()


@pytest.mark.parametrize(
    "name",
    [
        "plugin.library.paths",
        "sasl.jaas.config",
        "ssl.engine.location",
        "error_cb",
        "oauth_cb",
        "on_delivery",
        "delivery.report.only.error",
        "enable.partition.eof",
        "enable.gapless.guarantee",
        "max.in.flight.requests",
        "debug",
        "bootstrap.server",
        "bootstrap_servers",
        "linger.ms ",
        "xlinger.ms",
        "LINGER.MS",
        "",
    ],
    ids=repr,
)
def test_an_unknown_setting_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConnectionSettingsError) as refusal:
        settings_of(with_broker(**{name: "x"}))
    assert f"connection 'kafka' has {name!r} in its extra" in str(refusal.value)


@pytest.mark.parametrize(
    ("value", "kind"), [(None, "NoneType"), ([], "list"), (["a"], "list"), ({"a": 1}, "dict")], ids=repr
)
def test_a_value_that_is_no_word_is_refused(value: Any, kind: str) -> None:
    with pytest.raises(ConnectionSettingsError, match=rf"'linger\.ms' set to {kind}: a word or a number is needed"):
        settings_of(with_broker(**{"linger.ms": value}))


@pytest.mark.parametrize(
    ("value", "passed_on"), [(True, "true"), (False, "false"), (5, "5"), (0.5, "0.5"), ("True", "True")], ids=repr
)
def test_every_value_is_passed_on_as_librdkafka_writes_it(value: Any, passed_on: str) -> None:
    assert settings_of(with_broker(**{"socket.keepalive.enable": value}))["socket.keepalive.enable"] == passed_on


@pytest.mark.parametrize(
    ("host", "port", "servers"),
    [
        ("broker", 9092, "broker:9092"),
        ("broker", None, "broker"),
        ("broker:9093", 9092, "broker:9093"),
        ("one:9092,two:9092", None, "one:9092,two:9092"),
        ("one:9092,two:9092", 9093, "one:9092,two:9092"),
    ],
)
def test_the_host_of_a_connection_names_the_brokers(host: str, port: int | None, servers: str) -> None:
    assert settings_of(host=host, port=port) == {"bootstrap.servers": servers}


def test_login_and_password_become_those_of_sasl() -> None:
    found = settings_of(with_broker(), login="kpipe", word=HUSH)
    assert found == with_broker(**{"sasl.username": "kpipe", "sasl.password": HUSH})


def test_the_extra_says_it_last() -> None:
    extra = with_broker(**{"sasl.username": "other"})
    assert settings_of(extra, host="elsewhere", port=1, login="kpipe") == extra


def test_the_older_name_of_the_broker_list_is_taken() -> None:
    assert settings_of({"metadata.broker.list": "broker:9092"}) == {"metadata.broker.list": "broker:9092"}


@pytest.mark.parametrize("extra", [{}, {"bootstrap.servers": ""}, {"linger.ms": 5}], ids=repr)
def test_a_connection_without_a_broker_is_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(ConnectionSettingsError, match="connection 'kafka' names no broker"):
        settings_of(extra)


def test_a_port_alone_is_no_broker() -> None:
    with pytest.raises(ConnectionSettingsError, match="names no broker"):
        settings_of(port=9092)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.key.pem",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
    ],
)
def test_a_secret_is_found_by_its_name(name: str) -> None:
    assert secrets_of(settings_of(with_broker(**{name: HUSH}))) == [HUSH]


def test_a_setting_that_is_not_secret_stays_readable() -> None:
    found = settings_of(with_broker(**{"security.protocol": "SASL_SSL", "ssl.ca.location": "/ca.pem"}), login="kpipe")
    assert secrets_of(found) == []


def test_an_empty_secret_is_not_masked() -> None:
    assert secrets_of({"sasl.password": ""}) == []


def test_a_refusal_does_not_show_the_value() -> None:
    with pytest.raises(ConnectionSettingsError) as refusal:
        settings_of(with_broker(**{"sasl.jaas.config": f'password="{HUSH}";'}))
    assert HUSH not in str(refusal.value)
