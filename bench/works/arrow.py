"""The work of json.py, done by Arrow's kernels on a whole column, with the same output bytes."""

from __future__ import annotations

from bench.contestants.kpipe import EXACTLY_ONCE
from bench.contestants.spark_arrow import SPARK_ARROW
from bench.tasks.per_record import change
from bench.work import Work
from bench.works.json import RECORDS

ARROW = Work(
    name="arrow",
    about="the work of json by Arrow kernels",
    records=RECORDS,
    warm=(EXACTLY_ONCE, SPARK_ARROW),
    task="json_arrow",
    pipeline={"segments": ["kpipe_segments:change_batch"]},
    outcome=change,
    quick_records=100_000,
)
