"""Eight partitions, and 80 % of the records in one of them, with work that takes a core.

In order, only one core can work on that partition. Spark can cut a partition into several ranges, which gives up the
order as well: the peer does so, with `minPartitions`.
"""

from __future__ import annotations

from bench.contestants.kpipe import EXACTLY_ONCE
from bench.contestants.spark_arrow import SPARK_ARROW
from bench.tasks.per_record import burn
from bench.work import Records, Work
from bench.works.relaxed import relaxed

SKEW = Work(
    name="skew",
    about="8 partitions, one with 80 % of the records, 100 to 200 microseconds of Python for each",
    records=Records(100_000, partitions=8, heavy_percent=80),
    warm=(EXACTLY_ONCE, SPARK_ARROW),
    task="burn",
    pipeline={"segments": ["kpipe_segments:burn"]},
    # The 8 partitions, and the large one in pieces.
    spark_source={"minPartitions": "16"},
    outcome=burn,
)
SKEW_RELAXED = relaxed(SKEW, in_flight=1)
