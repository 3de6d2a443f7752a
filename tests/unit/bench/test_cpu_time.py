"""Whose CPU it is."""

from __future__ import annotations

import pytest

from bench.cpu_time import KINDS, kind_of


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (["java", "-cp", "libs/*", "kafka.Kafka", "server.properties"], "broker"),
        (["java", "-Xmx1g", "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"], "JVM"),
        (["python", "-m", "pyspark.daemon", "pyspark.worker"], "Python"),
        ([], "Python"),
    ],
)
def test_processes_are_told_apart_by_their_command(command: list[str], kind: str) -> None:
    assert kind_of(command) == kind
    assert kind in KINDS
