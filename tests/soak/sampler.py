"""A thread that looks at all of production every few seconds, and writes down each look."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.soak.processes import Process, look

SAMPLE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One look."""

    at: float
    """The wall clock's seconds."""
    processes: tuple[Process, ...]
    counts: Mapping[str, int]
    """Of what else must not grow, such as files in a folder, or groups of a broker."""

    def to_line(self) -> str:
        processes = [asdict(each) for each in self.processes]
        return json.dumps({"at": self.at, "processes": processes, "counts": dict(self.counts)}, separators=(",", ":"))

    @classmethod
    def from_line(cls, line: str) -> Sample:
        read = json.loads(line)
        return cls(read["at"], tuple(Process(**each) for each in read["processes"]), read["counts"])


def read_samples(file: Path) -> list[Sample]:
    return [Sample.from_line(line) for line in file.read_text().splitlines()]


class Sampler:
    """A context manager: looks are written to `file` for as long as the block lasts."""

    def __init__(self, file: Path, count: Callable[[], Mapping[str, int]], *, seconds: float = SAMPLE_SECONDS) -> None:
        self._file = file
        self._seconds = seconds
        self._count = count
        self._done = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._watch, name="soak-sampler")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def _watch(self) -> None:
        try:
            with self._file.open("w", buffering=1) as lines:
                while not self._done.wait(self._seconds):
                    lines.write(Sample(time.time(), tuple(look(os.getpid())), self._count()).to_line() + "\n")
        except Exception as error:  # noqa: BLE001 - it is raised when the block ends
            self._error = error


def files_below(folder: Path, *without: str) -> Iterator[Path]:
    """Everything in a folder that others write to meanwhile, without what is below some names in it."""
    for where, folders, files in os.walk(folder):
        if Path(where) == folder:
            folders[:] = [name for name in folders if name not in without]
        yield from (Path(where, name) for name in (*folders, *files))


def count_files(folder: Path, *without: str) -> int:
    return sum(1 for _ in files_below(folder, *without))
