"""Kafka's own command-line tools, run from the sandbox's jars.

`python -m airflow_provider_kpipe.sandbox.tools kafka-topics --bootstrap-server 127.0.0.1:9092 --list`
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from airflow_provider_kpipe.sandbox import process
from airflow_provider_kpipe.sandbox.errors import SandboxError, tail
from airflow_provider_kpipe.sandbox.jars import kafka_jars
from airflow_provider_kpipe.sandbox.java import SMALL_JVM, Jvm, find_java, java_command

_TOOLS = "org.apache.kafka.tools"
TOOLS: Mapping[str, str] = {
    "kafka-acls": f"{_TOOLS}.AclCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": f"{_TOOLS}.consumer.ConsoleConsumer",
    "kafka-console-producer": f"{_TOOLS}.ConsoleProducer",
    "kafka-consumer-groups": f"{_TOOLS}.consumer.group.ConsumerGroupCommand",
    "kafka-delete-records": f"{_TOOLS}.DeleteRecordsCommand",
    "kafka-get-offsets": f"{_TOOLS}.GetOffsetShell",
    "kafka-topics": f"{_TOOLS}.TopicCommand",
    "kafka-transactions": f"{_TOOLS}.TransactionsCommand",
}
"""Main classes, by the names of Kafka's own scripts."""


def main(arguments: Sequence[str]) -> int:
    """Run a tool in the terminal of this process, and return its exit code."""
    name, *given = arguments or ["--help"]
    if name not in TOOLS:
        sys.stderr.write(f"{name!r} is none of Kafka's tools here; there are: {', '.join(TOOLS)}\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="kpipe-tool-") as folder:
        command = java_command(find_java(), SMALL_JVM, kafka_jars(), Path(folder), TOOLS[name], given)
        try:
            return subprocess.run(command, check=False).returncode
        except KeyboardInterrupt:
            return 130


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
        TOOLS["kafka-consumer-groups"],
        ["--bootstrap-server", bootstrap_servers, *arguments],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
