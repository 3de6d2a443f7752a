from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_kpipe.exceptions import ConnectionSettingsError
from airflow_provider_kpipe.kafka.connection import client_settings
from airflow_provider_kpipe.kafka.registry_connection import registry_secrets, registry_settings

HUSH = "hush"
TAKEN = [
    "url",
    "proxy",
    "timeout",
    "basic.auth.user.info",
    "bearer.auth.credentials.source",
    "bearer.auth.token",
    "bearer.auth.client.secret",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "cache.capacity",
    "cache.latest.ttl.sec",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
]


@pytest.mark.parametrize("name", TAKEN)
def test_settings_of_the_registrys_client_lose_their_prefix(name: str) -> None:
    assert registry_settings("kafka", {f"schema.registry.{name}": "v", "linger.ms": 5}) == {name: "v"}


def test_numbers_become_words() -> None:
    extra = {"schema.registry.timeout": 2.5, "schema.registry.max.retries": 1}
    assert registry_settings("kafka", extra) == {"timeout": "2.5", "max.retries": "1"}


def test_a_connection_without_a_registry_has_no_settings() -> None:
    assert registry_settings("kafka", {"bootstrap.servers": "broker:9092"}) == {}
    assert registry_secrets({}) == []


def test_the_kafka_client_gets_none_of_them() -> None:
    extra = {"bootstrap.servers": "broker:9092", "schema.registry.url": "http://registry"}
    settings = client_settings("kafka", host=None, port=None, login=None, password=None, extra=extra)
    assert settings == {"bootstrap.servers": "broker:9092"}


@pytest.mark.parametrize("name", ["", "urls", "session.factory", "ssl.endpoint.identification.algorithm"])
def test_an_unknown_registry_setting_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConnectionSettingsError, match=f"connection 'kafka' has 'schema.registry.{name}' in its extra"):
        registry_settings("kafka", {f"schema.registry.{name}": "v"})


@pytest.mark.parametrize("value", [None, True, ["http://one"], {"a": 1}], ids=repr)
def test_a_value_is_a_word_or_a_number(value: Any) -> None:
    with pytest.raises(ConnectionSettingsError, match=f"set to {type(value).__name__}: a word or a number is needed"):
        registry_settings("kafka", {"schema.registry.url": value})


@pytest.mark.parametrize("url", [f"https://me:{HUSH}@registry", f"http://one, http://me:{HUSH}@two"])
def test_a_password_in_an_address_is_sent_elsewhere(url: str) -> None:
    with pytest.raises(ConnectionSettingsError, match=r"move it into 'schema\.registry\.basic\.auth") as refused:
        registry_settings("kafka", {"schema.registry.url": url})
    assert HUSH not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "secrets"),
    [
        ({"basic.auth.user.info": f"me:{HUSH}"}, [f"me:{HUSH}", HUSH]),
        ({"bearer.auth.token": HUSH}, [HUSH]),
        ({"bearer.auth.client.secret": HUSH, "bearer.auth.client.id": "me"}, [HUSH]),
        ({"ssl.key.password": HUSH, "ssl.key.location": "/key"}, [HUSH]),
        ({"proxy": f"http://me:{HUSH}@proxy:3128", "url": "http://registry"}, [HUSH]),
        ({"url": "http://registry", "ssl.key.password": ""}, []),
    ],
)
def test_secrets_are_told(settings: dict[str, str], secrets: list[str]) -> None:
    assert registry_secrets(settings) == secrets
