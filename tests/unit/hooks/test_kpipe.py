from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from airflow_provider_kpipe.exceptions import ConnectionSettingsError
from airflow_provider_kpipe.hooks import kpipe as module
from airflow_provider_kpipe.hooks.kpipe import KpipeHook

EXTRA = {
    "bootstrap.servers": "broker:9092",
    "sasl.password": "hush-kafka",
    "schema.registry.url": "http://registry",
    "schema.registry.basic.auth.user.info": "me:hush-registry",
}


@pytest.fixture
def masked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is masked from now on; there is one connection, `kafka`."""
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA", json.dumps({"conn_type": "kafka", "extra": EXTRA}))
    found: list[str] = []
    monkeypatch.setattr(module, "mask_secret", found.append)
    return found


def test_the_client_and_the_registry_get_their_own_settings(masked: list[str]) -> None:
    hook = KpipeHook("kafka")
    assert hook.get_conn() == {"bootstrap.servers": "broker:9092", "sasl.password": "hush-kafka"}
    assert hook.get_registry() == {"url": "http://registry", "basic.auth.user.info": "me:hush-registry"}
    assert masked == ["hush-kafka", "me:hush-registry", "hush-registry"]


@pytest.mark.parametrize("get", [KpipeHook.get_conn, KpipeHook.get_registry])
def test_a_connection_that_is_missing_is_named(masked: list[str], get: Callable[[KpipeHook], object]) -> None:
    with pytest.raises(ConnectionSettingsError, match="there is no Airflow connection 'nowhere'"):
        get(KpipeHook("nowhere"))
