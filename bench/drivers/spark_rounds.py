"""Spark's own Kafka source and sink: once for a whole submit, or again and again in one session.

It runs in the peers' environment, and takes one request as its argument, or without one, requests on stdin.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from serve import Run, serve

COLUMNS = ("key", "value", "headers")


def copy_batch(spark: SparkSession, request: dict[str, Any]) -> None:
    records = spark.read.format("kafka").options(**request["read"]).load()
    records.select(*COLUMNS).write.format("kafka").options(topic=request["output"], **request["write"]).save()


def copy_available(spark: SparkSession, request: dict[str, Any]) -> None:
    records = spark.readStream.format("kafka").options(**request["read"]).load()
    writer = records.select(*COLUMNS).writeStream.format("kafka").options(topic=request["output"], **request["write"])
    # A copy starts at the beginning, so its checkpoint is a new one.
    writer.option("checkpointLocation", request["checkpoint"]).trigger(availableNow=True).start().awaitTermination()
    shutil.rmtree(request["checkpoint"], ignore_errors=True)


def map_in_arrow(spark: SparkSession, request: dict[str, Any]) -> None:
    # It is one of the py-files, which are on the path once there is a session; the workers import it from there too.
    from spark_tasks import columns_of, schema_of

    records = spark.read.format("kafka").options(**request["read"]).load().select(*COLUMNS)
    task = partial(columns_of, request["task"], request["output"], request["dead_letters"])
    mapped = records.mapInArrow(task, schema_of(with_topic=request["dead_letters"] is not None))
    # If records go to several topics, a column names each one's; otherwise the option does, which saves the column.
    to = {} if request["dead_letters"] else {"topic": request["output"]}
    mapped.write.format("kafka").options(**to, **request["write"]).save()


WAYS: dict[str, Callable[[SparkSession, dict[str, Any]], None]] = {
    "batch": copy_batch,
    "streaming": copy_available,
    "arrow": map_in_arrow,
}


def open_session() -> Run:
    spark = SparkSession.builder.getOrCreate()

    def run(request: dict[str, Any]) -> dict[str, Any]:
        WAYS[request["way"]](spark, request)
        return {}

    return run


if __name__ == "__main__":
    if len(sys.argv) > 1:
        open_session()(json.loads(sys.argv[1]))
    else:
        serve(open_session)
