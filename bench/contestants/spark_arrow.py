"""Spark's batch source, `mapInArrow`, and Spark's sink: the way for Python to process records."""

from __future__ import annotations

from pathlib import Path

from bench.contestants.spark import Spark
from bench.peers import SparkEnvironment

SPARK_ARROW = "Spark mapInArrow"


def spark_arrow(environment: SparkEnvironment, folder: Path) -> Spark:
    return Spark(SPARK_ARROW, "arrow", environment, folder)
