"""Spark properties in a private file, so that the users' values show in no argument list."""

from __future__ import annotations

import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_provider_kpipe.contract.job_file import write_private

_PLAIN = frozenset(string.ascii_letters + string.digits + "-._/,+*")

# The driver only coordinates: its JVM should start quickly and stay small.
DRIVER_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss4m"

DEFAULTS: Mapping[str, str] = {
    # A cluster's own extraJavaOptions, from spark-defaults.conf, stay in effect after these.
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
# The Spark connection overrides the first; the second would move the driver away from its task.
NOT_PROPERTIES: Mapping[str, str] = {
    "spark.master": "the Spark connection says which master, as its host",
    "spark.submit.deployMode": "kpipe's driver runs beside its Airflow task",
}


def spark_properties(master: str, spark_conf: Mapping[str, str]) -> dict[str, str]:
    """Return a job's properties, without secrets of kpipe: clusters keep them, and show them."""
    check_spark_conf(spark_conf)
    return {
        **DEFAULTS,
        **(LOCAL_DEFAULTS if master.startswith("local") else {}),
        **{name: str(value) for name, value in spark_conf.items()},
        **FORCED,
    }


def check_spark_conf(spark_conf: Any) -> None:
    if not isinstance(spark_conf, Mapping):
        raise ValueError(f"spark_conf={spark_conf!r}: use a dictionary, such as {{'spark.executor.memory': '2g'}}")
    for name in spark_conf:
        if not isinstance(name, str):
            raise ValueError(f"spark_conf has the name {name!r}: use a text, such as 'spark.executor.memory'")
    for name in FORCED:
        if name in spark_conf:
            raise ValueError(f"spark_conf sets {name!r}, which kpipe sets itself: remove it")
    for name, why in NOT_PROPERTIES.items():
        if name in spark_conf:
            raise ValueError(f"spark_conf sets {name}={spark_conf[name]!r}: remove it, {why}")


def write_properties(target: Path, properties: Mapping[str, str]) -> Path:
    """Write the properties in Java's format, readable for this user only."""
    lines = (f"{_escaped(name)}={_escaped(value)}\n" for name, value in properties.items())
    return write_private(target, "".join(lines))


def _escaped(text: str) -> str:
    """Escape each letter as UTF-16 units, a backslash, a u and four digits, in which Java sees no syntax."""
    return "".join(letter if letter in _PLAIN else _units(letter) for letter in text)


def _units(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
