"""Each record is parsed, changed and serialized by itself, in Python."""

from __future__ import annotations

from bench.contestants.confluent import PLAIN, PLAIN_TRANSACTIONS
from bench.contestants.kpipe import AT_LEAST_ONCE, EXACTLY_ONCE
from bench.contestants.spark_arrow import SPARK_ARROW
from bench.tasks.per_record import change
from bench.work import Records, Work

RECORDS = Records(1_000_000)

JSON = Work(
    name="json",
    about="records of 190 bytes: JSON parsed, one field changed, serialized, one at a time in Python",
    records=RECORDS,
    warm=(EXACTLY_ONCE, AT_LEAST_ONCE, SPARK_ARROW, PLAIN, PLAIN_TRANSACTIONS),
    cold=(EXACTLY_ONCE, SPARK_ARROW),
    task="json",
    pipeline={"segments": ["kpipe_segments:change"]},
    outcome=change,
    quick_records=100_000,
)
