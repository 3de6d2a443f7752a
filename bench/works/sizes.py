"""Larger records are copied as they are."""

from __future__ import annotations

from bench.contestants.kpipe import AT_LEAST_ONCE, EXACTLY_ONCE
from bench.contestants.spark_batch import SPARK_BATCH
from bench.work import Records, Work

_WARM = (EXACTLY_ONCE, AT_LEAST_ONCE, SPARK_BATCH)

ONE_KILOBYTE = Work("1 kB", "a copy of records of 1 kB", Records(400_000, padding=950), _WARM)
TEN_KILOBYTES = Work("10 kB", "a copy of records of 10 kB", Records(50_000, padding=9_950), _WARM)
