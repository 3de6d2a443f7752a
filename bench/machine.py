"""Description of the machine of a measurement, and the versions of the software."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import distributions, version
from pathlib import Path

import psutil
from confluent_kafka import libversion

from airflow_provider_kpipe.sandbox.jars import ROOTS
from airflow_provider_kpipe.sandbox.java import find_java
from bench.peers import ROOTS as PEER_ROOTS
from bench.peers import SparkEnvironment


def describe_machine() -> dict[str, str | int | float]:
    return {
        "cores": os.cpu_count() or 0,
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "cpu": _cpu_model(),
        "system": f"{platform.system()} {platform.release()}",
        "load_before": round(os.getloadavg()[0], 2),
    }


def describe_versions(peer: SparkEnvironment, airflow_kafka: Path) -> dict[str, str]:
    return {
        "kpipe": version("airflow-provider-kpipe"),
        "python": platform.python_version(),
        "java": _java_version(),
        "broker": ROOTS[0].coordinates.rpartition(":")[2],
        "pyspark": version("pyspark"),
        "confluent-kafka": version("confluent-kafka"),
        "librdkafka": str(libversion()[0]),
        "peer pyspark": _version_in(peer.python, "pyspark"),
        "peer connector": PEER_ROOTS[0].coordinates.rpartition(":")[2],
        "peer Kafka provider": _version_in(airflow_kafka, "apache-airflow-providers-apache-kafka"),
    }


def _cpu_model() -> str:
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return model[1] if model else platform.machine()


def _java_version() -> str:
    answer = subprocess.run([find_java(), "-version"], capture_output=True, text=True, check=True)
    found = re.search(r'version "([^"]+)"', answer.stderr)
    return found[1] if found else "unknown"


def _version_in(python: Path, name: str) -> str:
    site = [str(path) for path in python.parent.parent.glob("lib/python3*/site-packages")]
    return next(iter(distributions(name=name, path=site))).version
