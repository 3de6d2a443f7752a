"""A copy over few and many partitions; copy.py has 4."""

from __future__ import annotations

from bench.contestants.kpipe import AT_LEAST_ONCE, EXACTLY_ONCE
from bench.contestants.spark_batch import SPARK_BATCH
from bench.work import Records, Work

_WARM = (EXACTLY_ONCE, AT_LEAST_ONCE, SPARK_BATCH)

ONE_PARTITION = Work("1 partition", "a copy of one partition", Records(500_000, partitions=1), _WARM)
FORTY_PARTITIONS = Work("40 partitions", "a copy over 40 partitions", Records(500_000, partitions=40), _WARM)
THOUSAND_PARTITIONS = Work(
    "1,000 partitions", "a copy of 1,000 partitions with 100 records each", Records(100_000, partitions=1_000), _WARM
)
