"""Choice of the parts to measure: all of them, the quick ones, or one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.contestants.confluent import PLAIN
from bench.contestants.kpipe import AT_LEAST_ONCE, EXACTLY_ONCE
from bench.contestants.spark_arrow import SPARK_ARROW
from bench.contestants.spark_batch import SPARK_BATCH
from bench.work import BenchError, Work
from bench.works import HEATS, Heat

MEMORY, SMALL_RUN = "memory", "small"
"""Two parts beside the heats: the memory of a worker, and a small run inside Airflow."""
QUICK_CONTESTANTS = (EXACTLY_ONCE, AT_LEAST_ONCE, SPARK_BATCH, SPARK_ARROW, PLAIN)
PARTS = (*(heat.name for heat in HEATS), MEMORY, SMALL_RUN)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The heats and other parts to measure, the numbers of rounds that count, and the range sizes for memory."""

    heats: Sequence[Heat]
    extras: Sequence[str]
    warm_rounds: int = 3
    cold_rounds: int = 3
    memory_records: Sequence[int] = (1_000_000, 5_000_000)


def choose_sizes(part: str | None = None, *, quick: bool = False, records: int | None = None) -> Sizes:
    """Choose the sizes; `records` limits every work to so many records, to try out the whole benchmark."""
    heats: Sequence[Heat] = [_quick(heat) for heat in HEATS] if quick else HEATS
    if part is not None:
        heats = [heat for heat in heats if part in (heat.name, *(work.name for work in heat.works))]
        if not heats and part not in PARTS:
            raise BenchError(f"there is no part {part!r}: choose one of {', '.join(PARTS)}, or a work of one of them")
    heats = [heat for heat in heats if heat.works]
    extras = [name for name in (MEMORY, SMALL_RUN) if name == part or (part is None and not quick)]
    sizes = Sizes(heats, extras, cold_rounds=1 if quick else 3)
    if records is None:
        return sizes
    return replace(sizes, heats=[_of_size(heat, records) for heat in heats], memory_records=(records, 5 * records))


def _quick(heat: Heat) -> Heat:
    return replace(heat, works=[_quick_work(work) for work in heat.works if work.quick_records])


def _quick_work(work: Work) -> Work:
    warm, cold = ([name for name in names if name in QUICK_CONTESTANTS] for names in (work.warm, work.cold))
    return replace(work.with_records(work.quick_records), warm=warm, cold=cold)


def _of_size(heat: Heat, records: int) -> Heat:
    return replace(heat, works=[work.with_records(min(records, work.records.count)) for work in heat.works])
