"""Settings for librdkafka from an Airflow connection: allow-listed, so that a connection can only tune."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_provider_kpipe.exceptions import ConnectionSettingsError
from airflow_provider_kpipe.kafka.registry_connection import PREFIX

# Settings for reaching a cluster and for logging in.
_ACCESS = re.compile(
    r"bootstrap\.servers|metadata\.broker\.list|security\.protocol|client\.(id|rack|dns\.lookup)"
    r"|sasl\.(mechanisms?|username|password|kerberos\.(service\.name|principal|keytab|min\.time\.before\.relogin)|oauthbearer\..+)|enable\.sasl\.oauthbearer\.unsecure\.jwt"
    r"|ssl\.(ca|certificate|key|keystore|crl|endpoint|cipher|curves|sigalgs|providers)(\..+|)"
    r"|enable\.ssl\.certificate\.verification|https\.ca\.(location|pem)"
)
# Settings that change how fast or how patient a client is, and never its effect on records and offsets.
_TUNING = re.compile(
    r"socket\..+|broker\.(address\.(ttl|family))|reconnect\.backoff\..+|retry\.backoff\..+|connections\.max\.idle\.ms"
    r"|enable\.sparse\.connections"
    r"|metadata\.max\.age\.ms|topic\.metadata\..+|message\.max\.bytes|receive\.message\.max\.bytes|max\.in\.flight"
    r"|fetch\.(wait\.max\.ms|min\.bytes|max\.bytes|message\.max\.bytes|queue\.backoff\.ms|error\.backoff\.ms)"
    r"|max\.partition\.fetch\.bytes|queued\.(min\.messages|max\.messages\.kbytes)|check\.crcs"
    r"|linger\.ms|queue\.buffering\..+|batch\.(num\.messages|size)|sticky\.partitioning\.linger\.ms|compression\.level"
    r"|request\.timeout\.ms|message\.timeout\.ms|delivery\.timeout\.ms|log_level"
)
# Settings that are common in connections for other Kafka operators. Here the pipeline decides them.
_DECIDED_BY_PIPELINE = frozenset(
    {
        "group.id",
        "group.instance.id",
        "auto.offset.reset",
        "enable.auto.commit",
        "auto.commit.interval.ms",
        "enable.auto.offset.store",
        "session.timeout.ms",
        "max.poll.interval.ms",
        "heartbeat.interval.ms",
        "isolation.level",
        "acks",
        "request.required.acks",
        "enable.idempotence",
        "transactional.id",
        "transaction.timeout.ms",
        "compression.type",
        "compression.codec",
        "partitioner",
    }
)
_SECRET = re.compile(r"password|secret|ssl\.key\.pem|ssl\.keystore\.certificate|sasl\.oauthbearer\.config|private\.key")


def client_settings(
    conn_id: str,
    *,
    host: str | None,
    port: int | None,
    login: str | None,
    password: str | None,
    extra: Mapping[str, Any],
) -> dict[str, str]:
    """Return settings for a client without those that the pipeline decides; raise for an unknown setting."""
    settings: dict[str, str] = {}
    if host:
        settings["bootstrap.servers"] = f"{host}:{port}" if port and ":" not in host else host
    if login:
        settings["sasl.username"] = login
    if password:
        settings["sasl.password"] = password
    for name, value in extra.items():
        if name in _DECIDED_BY_PIPELINE or name.startswith(PREFIX):
            continue
        if not (_ACCESS.fullmatch(name) or _TUNING.fullmatch(name)):
            raise ConnectionSettingsError(
                f"connection {conn_id!r} has {name!r} in its extra, which kpipe does not pass on: remove it; "
                "librdkafka settings for access (bootstrap.servers, security.protocol, sasl.*, ssl.*) and for "
                "tuning (fetch.*, linger.ms, ...) are taken"
            )
        if isinstance(value, (Mapping, list)) or value is None:
            raise ConnectionSettingsError(
                f"connection {conn_id!r} has {name!r} set to {type(value).__name__}: a word or a number is needed"
            )
        settings[name] = str(value).lower() if isinstance(value, bool) else str(value)
    if not settings.get("bootstrap.servers") and not settings.get("metadata.broker.list"):
        raise ConnectionSettingsError(
            f'connection {conn_id!r} names no broker: put {{"bootstrap.servers": "host:9092"}} into its extra, '
            "or fill in its host and port"
        )
    return settings


def secrets_of(settings: Mapping[str, str]) -> list[str]:
    """Return the values that must never be shown."""
    return [value for name, value in settings.items() if value and _SECRET.search(name)]
