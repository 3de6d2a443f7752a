"""The work of json.py, except that one record of ten is not JSON and becomes a dead letter.

kpipe's dead letters describe the fault in their headers. The peer's go to the topic as they came.
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
