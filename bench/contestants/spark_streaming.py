"""Structured Streaming with `availableNow`: all present records in one batch, with a checkpoint of its own."""

from __future__ import annotations

from pathlib import Path

from bench.contestants.spark import Spark
from bench.peers import SparkEnvironment

SPARK_STREAMING = "Spark availableNow"


def spark_streaming(environment: SparkEnvironment, folder: Path) -> Spark:
    return Spark(SPARK_STREAMING, "streaming", environment, folder)
