"""Hook from the id of an Airflow connection to librdkafka settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from airflow_provider_kpipe.exceptions import ConnectionSettingsError
from airflow_provider_kpipe.kafka.connection import client_settings, secrets_of
from airflow_provider_kpipe.kafka.registry_connection import registry_secrets, registry_settings

if TYPE_CHECKING:
    from airflow.sdk import Connection


class KpipeHook(BaseHook):
    """Hook for a Kafka connection, such as the Kafka provider's: its extra holds librdkafka settings."""

    def __init__(self, kafka_conn_id: str = "kafka_default") -> None:
        super().__init__()
        self.kafka_conn_id = kafka_conn_id

    def get_conn(self) -> dict[str, str]:
        """Return the settings for a client; from here on, Airflow masks their secrets in every log."""
        try:
            return self._settings_of(self.get_connection(self.kafka_conn_id))
        except AirflowNotFoundException as error:
            raise self._missing() from error

    async def aget_conn(self) -> dict[str, str]:
        """Return the same settings from within a trigger."""
        try:
            return self._settings_of(await self.aget_connection(self.kafka_conn_id))
        except AirflowNotFoundException as error:
            raise self._missing() from error

    def get_registry(self) -> dict[str, str]:
        """Return the settings of the connection's schema registry, masked in the same way; empty if it names none."""
        try:
            connection = self.get_connection(self.kafka_conn_id)
        except AirflowNotFoundException as error:
            raise self._missing() from error
        settings = registry_settings(self.kafka_conn_id, connection.extra_dejson)
        for secret in registry_secrets(settings):
            mask_secret(secret)
        return settings

    def _settings_of(self, connection: Connection) -> dict[str, str]:
        extra: dict[str, Any] = connection.extra_dejson
        settings = client_settings(
            self.kafka_conn_id,
            host=connection.host,
            port=connection.port,
            login=connection.login,
            password=connection.password,
            extra=extra,
        )
        for secret in secrets_of(settings):
            mask_secret(secret)
        return settings

    def _missing(self) -> ConnectionSettingsError:
        return ConnectionSettingsError(
            f"there is no Airflow connection {self.kafka_conn_id!r}: create it (type kafka, with bootstrap.servers "
            "in its extra), or name another one in the pipeline's source or destination"
        )
