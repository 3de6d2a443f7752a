"""Each record is parsed, and one of ten passes as it came."""

from __future__ import annotations

from bench.contestants.kpipe import EXACTLY_ONCE
from bench.contestants.spark_arrow import SPARK_ARROW
from bench.work import Work
from bench.works.json import RECORDS

FILTER = Work(
    name="filter",
    about="records of 190 bytes: JSON parsed, 90 % filtered",
    records=RECORDS,
    warm=(EXACTLY_ONCE, SPARK_ARROW),
    task="filter",
    pipeline={"segments": ["kpipe_segments:keep"]},
    passes=lambda record_id: record_id % 10 == 0,
)
