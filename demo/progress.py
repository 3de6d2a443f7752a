"""Progress of a run: one line per partition, rewritten in place on a terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TextIO

from airflow_provider_kpipe.contract.progress.progress import PartitionProgress

_BAR = 30
_UP_AND_CLEAR = "\x1b[1A\x1b[2K"


class Stage:
    """The demo's output: lines with the time since its start, and the progress lines."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._started = time.monotonic()
        self._in_place = out.isatty()
        self._drawn = 0
        self._last: Sequence[str] = ()

    def say(self, text: str) -> None:
        """Print a line with the time since the start."""
        self._write(f"{time.monotonic() - self._started:5.1f} s  {text}\n")
        self._drawn = 0

    def show(self, text: str) -> None:
        """Print text without a time, after an empty line."""
        self._write(f"\n{text}\n")
        self._drawn = 0

    def progress(self, partitions: Sequence[PartitionProgress]) -> None:
        """Print a line per partition: on a terminal over those of the last call, elsewhere only those that changed."""
        lines = [progress_line(each) for each in partitions]
        if lines == self._last:
            return
        if self._in_place:
            self._write(_UP_AND_CLEAR * self._drawn + "".join(f"{line}\n" for line in lines))
            self._drawn = len(lines)
        else:
            self._write("".join(f"{line}\n" for line in lines if line not in self._last))
        self._last = lines

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def progress_line(each: PartitionProgress) -> str:
    """Format the progress that the run of one partition has stored in Kafka."""
    filled = int(_BAR * each.fraction)
    return (
        f"         partition {each.range.partition} {'█' * filled}{'·' * (_BAR - filled)} {each.fraction:4.0%} "
        f"{each.offsets_completed:>8,} of {len(each.range):,}, "
        f"{each.counts.dead_lettered} dead letters, {each.reason or each.state}"
    )
