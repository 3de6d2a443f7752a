"""Settings of a schema registry from an Airflow connection: they have the prefix `schema.registry.`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from airflow_provider_kpipe.exceptions import ConnectionSettingsError

PREFIX = "schema.registry."

# The settings of confluent-kafka's SchemaRegistryClient whose value is a word or a number.
_TAKEN = re.compile(
    r"url|proxy|timeout|basic\.auth\.user\.info|bearer\.auth\..+|ssl\.(ca|certificate|key)\.location|ssl\.key\.password"
    r"|cache\.(capacity|latest\.ttl\.sec)|max\.retries|retries\.(max\.)?wait\.ms"
)
_SECRET = re.compile(r"basic\.auth\.user\.info|bearer\.auth\.(token|client\.secret)|ssl\.key\.password")


def registry_settings(conn_id: str, extra: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings without the prefix; none for a connection that names no registry."""
    settings = {}
    for name, value in extra.items():
        if not name.startswith(PREFIX):
            continue
        own = name.removeprefix(PREFIX)
        if not _TAKEN.fullmatch(own):
            raise ConnectionSettingsError(
                f"connection {conn_id!r} has {name!r} in its extra, which kpipe does not pass on: remove it; "
                "what confluent-kafka's SchemaRegistryClient takes (url, basic.auth.user.info, bearer.auth.*, ssl.*, "
                f"timeout, ...) is taken with {PREFIX!r} in front"
            )
        if not isinstance(value, (str, int, float)) or isinstance(value, bool):
            raise ConnectionSettingsError(
                f"connection {conn_id!r} has {name!r} set to {type(value).__name__}: a word or a number is needed"
            )
        settings[own] = str(value)
    if any(_user_info(url) for url in settings.get("url", "").split(",")):
        # Errors show the address.
        raise ConnectionSettingsError(
            f"connection {conn_id!r} has a password in its {PREFIX}url: "
            f"move it into '{PREFIX}basic.auth.user.info', as user:password"
        )
    return settings


def registry_secrets(settings: Mapping[str, str]) -> list[str]:
    """Return the values that must never be shown: each whole, and the password behind a user's name by itself."""
    hidden = [value for name, value in settings.items() if _SECRET.fullmatch(name)]
    hidden += [settings.get("basic.auth.user.info", "").partition(":")[2], _user_info(settings.get("proxy", ""))]
    return [value for value in hidden if value]


def _user_info(url: str) -> str:
    return unquote(urlsplit(url.strip()).password or "")
