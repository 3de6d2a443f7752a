"""The folder that is left of a torture, written without a broker."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.torture.checker.dump import (
    DUMP,
    HISTORY,
    Cluster,
    Commit,
    Ends,
    Row,
    aborted_file,
    committed_file,
    line_of,
    write_cluster,
)
from tests.torture.history import History

MARK = '{"kpipe":"commit_mark"}'
NOW = 1_800_000_000_000


@dataclass
class Topic:
    """Rows of records that are committed, and of others; markers take an offset each."""

    ends: list[int]
    rows: list[Row] = field(default_factory=list)
    aborted: list[Row] = field(default_factory=list)

    def append(self, partition: int, row: Row, aborted: bool = False) -> int:
        offset = self.ends[partition]
        self.ends[partition] += 1
        (self.aborted if aborted else self.rows).append(row._replace(partition=partition, offset=offset))
        return offset


class Stage:
    """All pipelines, and the folder that is left of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.history = History(folder / HISTORY)
        self.topics: dict[str, Topic] = {}
        self.commits: list[Commit] = []
        self._last_id = 0

    @property
    def now(self) -> float:
        return time.monotonic()

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def commit(self, group: str, topic: str, partition: int, offset: int, mark: str = MARK) -> None:
        self.commits.append(Commit(group, topic, partition, offset, mark, NOW + 10 * len(self.commits)))

    def close(self, committed: Mapping[str, Mapping[str, Mapping[int, int]]]) -> None:
        """In the end, groups stand there, by topic and partition."""
        self.history.ended()
        self.history.close()
        dump = self.folder / DUMP
        dump.mkdir()
        for name, topic in self.topics.items():
            _write(committed_file(dump, name), topic.rows)
            _write(aborted_file(dump, name), topic.aborted)
        ends = {
            name: {each: Ends(0, end, end) for each, end in enumerate(topic.ends)}
            for name, topic in self.topics.items()
        }
        write_cluster(dump, Cluster(ends, committed, self.commits))


def _write(path: Path, rows: Iterable[Row]) -> None:
    path.write_text("".join(map(line_of, sorted(rows, key=lambda row: (row.partition, row.offset)))))
