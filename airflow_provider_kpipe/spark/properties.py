"""Spark properties in a private file: what is in there shows in no argument list and in no log."""

from __future__ import annotations

import os
import string
from collections.abc import Mapping
from pathlib import Path

from airflow_provider_kpipe.contract.job import JOB_PROPERTY, SETTINGS_PROPERTY, Job, KafkaSettings, pack

_PLAIN = frozenset(string.ascii_letters + string.digits + "-._/,+*")

# The driver only coordinates: the JVM should be up quickly and stay small.
DRIVER_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss4m"

DEFAULTS: Mapping[str, str] = {
    # What a cluster's spark-defaults.conf has in extraJavaOptions stays, and comes behind.
    "spark.driver.defaultJavaOptions": DRIVER_JVM,
    "spark.log.level": "WARN",
    "spark.ui.showConsoleProgress": "false",
    # Progress is read from Kafka; a user who wants Spark's own page turns it on in spark_conf.
    "spark.ui.enabled": "false",
}
LOCAL_DEFAULTS: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
# A second copy of a task would be fenced by the first, or fence it.
FORCED: Mapping[str, str] = {"spark.speculation": "false"}


def spark_properties(job: Job, kafka: KafkaSettings, master: str, spark_conf: Mapping[str, str]) -> dict[str, str]:
    for name in (JOB_PROPERTY, SETTINGS_PROPERTY, *FORCED):
        if name in spark_conf:
            raise ValueError(f"spark_conf sets {name!r}, which kpipe sets itself: remove it")
    return {
        **DEFAULTS,
        **(LOCAL_DEFAULTS if master.startswith("local") else {}),
        **{name: str(value) for name, value in spark_conf.items()},
        **FORCED,
        JOB_PROPERTY: pack(job),
        SETTINGS_PROPERTY: pack(kafka),
    }


def write_properties(target: Path, properties: Mapping[str, str]) -> Path:
    """Java's properties format, readable by this user only from the first byte on."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        for name, value in properties.items():
            file.write(f"{_escaped(name)}={_escaped(value)}\n")
    return target


def _escaped(text: str) -> str:
    """Java reads a backslash, a u and four digits as a unit of UTF-16 that means nothing to the format."""
    return "".join(letter if letter in _PLAIN else _units(letter) for letter in text)


def _units(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
