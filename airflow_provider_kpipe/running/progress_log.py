"""Progress that a running job stores in Kafka, shown in the task log and wherever else the task wants it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import chain, repeat
from types import TracebackType
from typing import Self, TypeAlias

from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.faults.causes import merged
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from airflow_provider_kpipe.exceptions import KpipeError
from airflow_provider_kpipe.kafka.positions import Positions

log = logging.getLogger(__name__)

Show: TypeAlias = Callable[[Sequence[PartitionProgress]], object]

STOP_SECONDS = 5.0
# A log line per partition is of no use for hundreds of them.
MOST_LINES = 20
# With more partitions, the progress shown outside the log is large, and is shown at the end only.
MOST_SHOWN = 200


class ProgressLog:
    """A context manager: inside the block, a thread reads the progress group and logs the changes."""

    def __init__(self, settings: Mapping[str, str], plan: Plan, *, interval_seconds: float, show: Show) -> None:
        self._settings, self._plan, self._show = settings, plan, show
        self._interval = interval_seconds
        self.moved_at: dict[int, datetime] = {}
        """The time at which each partition was first seen at its present offset."""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="kpipe-progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join(STOP_SECONDS)

    def _watch(self) -> None:
        with Positions(self._settings, answer_seconds=STOP_SECONDS) as positions:
            before: dict[int, PartitionProgress] = {}
            looked_at = time.monotonic()
            # The first look, at once, gives the next one something to compare with: a short job has no third.
            waits = chain((0.0,), repeat(self._interval))
            while not self._done.wait(next(waits)):
                try:
                    progress = positions.progress(self._plan)
                except (KpipeError, DocumentError) as error:
                    log.warning("progress cannot be read now: %s", error)
                    continue
                now = time.monotonic()
                moved = [each for each in progress if _has_moved(each, before.get(each.range.partition))]
                self.moved_at |= dict.fromkeys((each.range.partition for each in moved), datetime.now(timezone.utc))
                if before and moved:
                    self._report(progress, moved, before, now - looked_at)
                    self._show_elsewhere(progress)
                before, looked_at = {each.range.partition: each for each in progress}, now

    def _show_elsewhere(self, progress: Sequence[PartitionProgress]) -> None:
        # Once the job is over, the task shows its final progress; nothing older may come after it.
        if len(progress) > MOST_SHOWN or self._done.is_set():
            return
        try:
            self._show(progress)
        except Exception as error:  # noqa: BLE001  # whatever Airflow's API raises: the job continues without
            log.warning("progress cannot be shown outside this log now: %s", error)

    def _report(
        self,
        progress: Sequence[PartitionProgress],
        moved: Sequence[PartitionProgress],
        before: Mapping[int, PartitionProgress],
        seconds: float,
    ) -> None:
        # Another run has read some of the records if one of the two took the partition over: the count may fall.
        rates = {
            each.range.partition: max(0, each.counts.read - before[each.range.partition].counts.read) / seconds
            for each in moved
        }
        for each in moved[:MOST_LINES]:
            log.info(
                "partition %d: %3.0f %%, %s records/s, %d dead letters",
                each.range.partition,
                100 * each.fraction,
                f"{rates[each.range.partition]:,.0f}",
                each.counts.dead_lettered,
            )
        offsets, planned = sum(each.offsets_completed for each in progress), self._plan.offsets_planned
        log.info(
            "all: %3.0f %%, %s records/s, %d of %d partitions complete",
            100 * offsets / planned if planned else 100,
            f"{sum(rates.values()):,.0f}",
            sum(each.complete for each in progress),
            len(progress),
        )


def _has_moved(now: PartitionProgress, before: PartitionProgress | None) -> bool:
    return before is None or now.offsets_completed != before.offsets_completed


def table(progress: Sequence[PartitionProgress], topic: str) -> str:
    """Return the state of every partition and the reasons why records could not pass, for the end of a task log."""
    head = ("partition", "start", "end", "stored", "state", "read", "written", "dead", "filtered", "lost", "records/s")
    rows = [
        (
            each.range.partition,
            each.range.start,
            each.range.end,
            each.next_offset,
            each.state,
            each.counts.read,
            each.counts.written,
            each.counts.dead_lettered,
            each.counts.filtered,
            each.counts.lost,
            f"{each.records_per_second:,.0f}",
        )
        for each in progress
    ]
    cells = [head, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join([*lines, *(each.shown(topic) for each in merged(chain(*(p.counts.causes for p in progress))))])
