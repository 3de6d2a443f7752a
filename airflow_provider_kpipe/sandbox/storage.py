"""Preparation of a data folder for its first broker, as Kafka wants it."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable
from pathlib import Path

from airflow_provider_kpipe.sandbox import process
from airflow_provider_kpipe.sandbox.errors import SandboxError, tail
from airflow_provider_kpipe.sandbox.java import SMALL_JVM, java_command

TIMEOUT_SECONDS = 60.0


def format_storage(java: Path, jars: Iterable[Path], settings: Path) -> None:
    """Format the data folder that the properties file `settings` names, for a new cluster."""
    # The "=" makes it one argument: an id may begin with a dash.
    arguments = ["format", f"--cluster-id={new_cluster_id()}", "--config", str(settings)]
    command = java_command(java, SMALL_JVM, jars, settings.parent, "kafka.tools.StorageTool", arguments)
    code, output = process.run(command, folder=settings.parent, timeout=TIMEOUT_SECONDS)
    if code != 0:
        raise SandboxError(
            f"Kafka could not format its storage by {settings} (exit code {code}):"
            f" check the broker's overrides. It said:\n{tail(output)}"
        )


def new_cluster_id() -> str:
    """Make a random cluster id in Kafka's format: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def read_cluster_id(identity: Path) -> str:
    """Read the cluster id from the `meta.properties` of a formatted folder."""
    for line in identity.read_text().splitlines():
        name, _, value = line.partition("=")
        if name == "cluster.id":
            return value
    raise SandboxError(f"{identity} has no cluster.id: the folder is damaged, remove it")
