"""Kafka's own command-line tools, run from the sandbox's jars."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from airflow_provider_kpipe.sandbox import process
from airflow_provider_kpipe.sandbox.errors import SandboxError, tail
from airflow_provider_kpipe.sandbox.jars import kafka_jars
from airflow_provider_kpipe.sandbox.java import SMALL_JVM, Jvm, find_java, java_command


def run_tool(main_class: str, arguments: Sequence[str], *, timeout: float = 60.0, jvm: Jvm = SMALL_JVM) -> str:
    """Run a main class of Kafka's jars to its end, and return its output."""
    with tempfile.TemporaryDirectory(prefix="kpipe-tool-") as name:
        folder = Path(name)
        command = java_command(find_java(), jvm, kafka_jars(), folder, main_class, arguments)
        code, output = process.run(command, folder=folder, timeout=timeout)
    if code != 0:
        raise SandboxError(f"{main_class} {' '.join(arguments)} failed with exit code {code}. It said:\n{tail(output)}")
    return output


def kafka_consumer_groups(bootstrap_servers: str, *arguments: str) -> str:
    """Run `kafka-consumer-groups`: `kafka_consumer_groups(address, "--describe", "--group", "orders")`."""
    return run_tool(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        ["--bootstrap-server", bootstrap_servers, *arguments],
    )
