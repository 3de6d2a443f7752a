"""Peak memory of kpipe's Python workers, over ranges of different lengths."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from bench.contestants.kpipe import Kpipe
from bench.data import delete_topics, seed, written_topics
from bench.report import MemoryPeak
from bench.work import BenchError, Job, Records, Work

log = logging.getLogger("bench")

SAMPLE_SECONDS = 0.05
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


class PeakMemory:
    """A context manager: watches the Python workers below a process, and keeps the memory peak of each.

    The kernel keeps the peak for the whole life of a process, so a late look misses only the very end.
    """

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._peaks: dict[int, int] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def megabytes(self) -> float:
        if not self._peaks:
            raise BenchError("no Python worker was seen: its memory cannot be measured")
        return max(self._peaks.values()) / 1000

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            # The tree changes meanwhile: some of its processes have ended already.
            with contextlib.suppress(psutil.NoSuchProcess):
                for process in self._root.children(recursive=True):
                    with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                        self._look_at(process)

    def _look_at(self, process: psutil.Process) -> None:
        if "pyspark.daemon" not in process.cmdline():
            return
        # A process that has ended, but was not reaped yet, has no peak left.
        if mark := _PEAK.search(Path(f"/proc/{process.pid}/status").read_text()):
            self._peaks[process.pid] = int(mark[1])


def measure_memory(bootstrap_servers: str, contestants: Sequence[Kpipe], counts: Sequence[int]) -> list[MemoryPeak]:
    """Measure a copy of one partition by a whole submit, over a range of each of the given lengths."""
    peaks = []
    for count in counts:
        work = Work("memory", "a copy of one range", Records(count, partitions=1), warm=())
        log.info("seeding %s records into %s", f"{count:,}", work.records.topic)
        seed(bootstrap_servers, work.records)
        for place, contestant in enumerate(contestants):
            job = Job(work, bootstrap_servers, f"memory-{count}-{place}")
            watches: list[PeakMemory] = []

            def watch(pid: int, watches: list[PeakMemory] = watches) -> PeakMemory:
                watches.append(PeakMemory(pid))
                return watches[0]

            with written_topics(job):
                contestant.submit(job, watch)
                contestant.check(job)
            peaks.append(MemoryPeak(contestant.name, count, watches[0].megabytes))
            log.info("memory: %s, %s records: %.0f MB", contestant.name, f"{count:,}", peaks[-1].megabytes)
        delete_topics(bootstrap_servers, [work.records.topic])
    return peaks
