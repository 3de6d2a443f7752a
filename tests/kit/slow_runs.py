"""Runs inside Airflow that take five minutes, unless told to hurry."""

from __future__ import annotations

import psutil

from tests.kit.pipelines import Bench
from tests.kit.topics import committed

# Slowly, these take longer than any test looks at them.
RECORDS = 6_000
GONE_SECONDS = 60
RUN_SECONDS = 180

SEGMENTS = """
import time
from pathlib import Path

def slowly_at_first(record):
    if not Path({hurry!r}).exists():
        time.sleep(0.05)
    return record
"""


def stored(bench: Bench) -> int:
    return committed(bench.bootstrap, f"{bench.pipeline.group}.kpipe", bench.topic, 1).get(0, 0)


def job_of(bench: Bench) -> list[psutil.Process]:
    """The driver's JVM and everything beneath it."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if f"kpipe {bench.pipeline.name}" in words and "org.apache.spark.deploy.SparkSubmit" in words:
            return [process, *process.children(recursive=True)]
    return []
