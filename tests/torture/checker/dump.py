"""What lies in the topics, as files: one line for each record, so that large topics are streamed.

`<folder>/<topic>.jsonl` has what readers of committed records see, `<folder>/<topic>.aborted.jsonl` what only others
see, and `<folder>/cluster.json` where everything begins and ends, and every commit of every group that is still known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

HISTORY, DUMP = "history.jsonl", "dump"
"""In a kept folder."""

Header = tuple[str, str | None]
"""The value has one character for each byte."""


class Row(NamedTuple):
    """A record as it lies in its topic. Keys have one character for each byte, of values there is a digest."""

    partition: int
    offset: int
    key: str | None
    digest: str
    timestamp: int
    headers: Sequence[Header]

    @property
    def id(self) -> int | None:
        """None where the key is no id."""
        key = self.key
        return int(key) if key is not None and key.isascii() and key.isdigit() and len(key) < 10 else None

    def header(self, name: str) -> str | None:
        """The last one of that name."""
        for found, value in reversed(self.headers):
            if found == name:
                return value
        return None


@dataclass(frozen=True, slots=True)
class Ends:
    """Where a partition begins and ends, and how far readers of committed records see."""

    low: int
    stable: int
    high: int


@dataclass(frozen=True, slots=True)
class Commit:
    """An offset that was committed to a group, or deleted from it (None)."""

    group: str
    topic: str
    partition: int
    offset: int | None
    metadata: str
    time: int
    """The broker's, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Cluster:
    ends: Mapping[str, Mapping[int, Ends]]
    """By topic and partition."""
    committed: Mapping[str, Mapping[str, Mapping[int, int]]]
    """By group, topic and partition: in the end, as the coordinator says."""
    commits: Sequence[Commit]
    """In order, for each group."""


def digest_of(value: bytes | None) -> str:
    return "" if value is None else blake2b(value, digest_size=8).hexdigest()


def line_of(row: Row) -> str:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n"


def committed_file(folder: Path, topic: str) -> Path:
    return folder / f"{topic}.jsonl"


def aborted_file(folder: Path, topic: str) -> Path:
    return folder / f"{topic}.aborted.jsonl"


def read_rows(path: Path) -> Iterator[Row]:
    """In the order of each partition's offsets."""
    if not path.exists():
        return
    loads, make = json.loads, Row._make
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield make(loads(line))


def write_cluster(folder: Path, cluster: Cluster) -> None:
    (folder / "cluster.json").write_text(json.dumps(asdict(cluster), indent=0))


def read_cluster_file(folder: Path) -> Cluster:
    told = json.loads((folder / "cluster.json").read_text())
    return Cluster(
        ends={
            topic: {int(partition): Ends(**each) for partition, each in by.items()}
            for topic, by in told["ends"].items()
        },
        committed={
            group: {topic: {int(partition): at for partition, at in held.items()} for topic, held in by.items()}
            for group, by in told["committed"].items()
        },
        commits=[Commit(**each) for each in told["commits"]],
    )
