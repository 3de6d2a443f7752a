"""The work of json.py, where one record of ten is no JSON and becomes a dead letter.

kpipe's dead letters say in headers what was wrong. The peer's go to the topic as they came.
"""

from __future__ import annotations

from dataclasses import replace

from bench.contestants.kpipe import EXACTLY_ONCE
from bench.contestants.spark_arrow import SPARK_ARROW
from bench.works.json import JSON, RECORDS

POISON = replace(
    JSON,
    name="poison",
    about="the work of json, with 10 % dead letters",
    records=replace(RECORDS, poison_percent=10),
    warm=(EXACTLY_ONCE, SPARK_ARROW),
    quick_records=0,
)
