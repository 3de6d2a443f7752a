"""All contestants."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.contestants import Contestant
from bench.contestants.airflow_kafka import AirflowKafka
from bench.contestants.confluent import Confluent
from bench.contestants.java_tools import JavaConsumer, JavaProducer
from bench.contestants.kpipe import Kpipe
from bench.contestants.spark_arrow import spark_arrow
from bench.contestants.spark_batch import spark_batch
from bench.contestants.spark_streaming import spark_streaming
from bench.peers import SparkEnvironment


def all_kpipe(folder: Path) -> list[Kpipe]:
    return [Kpipe("exactly_once", folder), Kpipe("at_least_once", folder)]


def all_peers(spark: SparkEnvironment, airflow_kafka: Path, folder: Path) -> Sequence[Contestant]:
    return [
        spark_batch(spark, folder),
        spark_streaming(spark, folder),
        spark_arrow(spark, folder),
        Confluent(folder, transactions=False),
        Confluent(folder, transactions=True),
        AirflowKafka(airflow_kafka, folder, tuned=True),
        AirflowKafka(airflow_kafka, folder, tuned=False),
        JavaProducer(),
        JavaConsumer(),
    ]
