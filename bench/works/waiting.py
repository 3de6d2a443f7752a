"""Each record waits 5 ms, as for a service or a database."""

from __future__ import annotations

from bench.contestants.kpipe import EXACTLY_ONCE
from bench.work import Records, Work
from bench.works.relaxed import relaxed

WAITING = Work(
    name="waiting",
    about="one partition, 5 ms of waiting for each record",
    records=Records(6_000, partitions=1),
    warm=(EXACTLY_ONCE,),
    task="wait",
    pipeline={"segments": ["kpipe_segments:wait"]},
)
WAITING_RELAXED = relaxed(WAITING, in_flight=50)
