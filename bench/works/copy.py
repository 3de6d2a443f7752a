"""Copy of records as they are."""

from __future__ import annotations

from bench.contestants.confluent import PLAIN, PLAIN_TRANSACTIONS
from bench.contestants.java_tools import JAVA_CONSUMER, JAVA_PRODUCER
from bench.contestants.kpipe import AT_LEAST_ONCE, EXACTLY_ONCE
from bench.contestants.spark_batch import SPARK_BATCH
from bench.contestants.spark_streaming import SPARK_STREAMING
from bench.work import Records, Work

COPY = Work(
    name="copy",
    about="records of 190 bytes with a header, as they are, over 4 partitions",
    records=Records(2_000_000),
    warm=(
        EXACTLY_ONCE,
        AT_LEAST_ONCE,
        SPARK_BATCH,
        SPARK_STREAMING,
        PLAIN,
        PLAIN_TRANSACTIONS,
        JAVA_PRODUCER,
        JAVA_CONSUMER,
    ),
    cold=(EXACTLY_ONCE, AT_LEAST_ONCE, SPARK_BATCH),
    quick_records=200_000,
)
