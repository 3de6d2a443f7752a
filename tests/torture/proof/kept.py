"""A kept folder as it lies there, to be changed and put elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.torture.checker.dump import (
    DUMP,
    HISTORY,
    Cluster,
    Row,
    aborted_file,
    committed_file,
    line_of,
    read_cluster_file,
    read_rows,
    write_cluster,
)


@dataclass
class Kept:
    """Everything that the checker reads."""

    events: list[dict[str, Any]]
    rows: dict[str, list[Row]]
    aborted: dict[str, list[Row]]
    cluster: Cluster

    @classmethod
    def read(cls, folder: Path) -> Kept:
        dump = folder / DUMP
        cluster = read_cluster_file(dump)
        return cls(
            [json.loads(line) for line in (folder / HISTORY).read_text().splitlines()],
            {topic: list(read_rows(committed_file(dump, topic))) for topic in cluster.ends},
            {topic: list(read_rows(aborted_file(dump, topic))) for topic in cluster.ends},
            cluster,
        )

    def write(self, folder: Path) -> None:
        dump = folder / DUMP
        dump.mkdir(parents=True)
        (folder / HISTORY).write_text("".join(json.dumps(each) + "\n" for each in self.events))
        for topic in self.cluster.ends:
            committed_file(dump, topic).write_text("".join(map(line_of, self.rows[topic])))
            aborted_file(dump, topic).write_text("".join(map(line_of, self.aborted[topic])))
        write_cluster(dump, self.cluster)

    def of(self, event: str, **fields: Any) -> Iterator[dict[str, Any]]:
        return (
            each
            for each in self.events
            if each["event"] == event and all(each[name] == value for name, value in fields.items())
        )

    def pipeline(self, **fields: Any) -> dict[str, Any]:
        """The first one that was declared like that."""
        return next(self.of("declared", **fields))

    def kinds(self) -> dict[int, str]:
        return {number: kind for each in self.of("produced") for number, _, kind in each["records"]}

    def index(self, topic: str, wanted: Callable[[Row], bool]) -> int:
        """Of the first such record in a topic."""
        return next(at for at, row in enumerate(self.rows[topic]) if wanted(row))
