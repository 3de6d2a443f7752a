"""Spark's batch source and sink: the JVM does everything, so this contestant only copies."""

from __future__ import annotations

from pathlib import Path

from bench.contestants.spark import Spark
from bench.peers import SparkEnvironment

SPARK_BATCH = "Spark source and sink"


def spark_batch(environment: SparkEnvironment, folder: Path) -> Spark:
    return Spark(SPARK_BATCH, "batch", environment, folder)
