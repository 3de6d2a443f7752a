"""An observer of topics and groups in a process of its own, over a way that nobody disturbs."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition

from tests.torture.cluster import QUIET
from tests.torture.history import History

STABLE_SECONDS = 0.2
GROUPS_SECONDS = 1.0
ANSWER_SECONDS = 1.0


@dataclass(frozen=True)
class Watched:
    """The topics and groups of a pipeline that are looked at."""

    group: str
    source: str
    written: Sequence[str]
    progress_group: str | None
    """None where its stored offsets are in several groups."""
    partitions: int


class Stable:
    """The offsets that readers of some topics come to, and how far they would if no transaction were open."""

    def __init__(self, bootstrap: str, watched: Sequence[Watched], history: History) -> None:
        self._history = history
        self._topics = [(topic, each.partitions) for each in watched for topic in each.written]
        # A consumer finds out by itself who leads by now; the answers of an AdminClient never came back after that.
        self._readers = [
            Consumer({"bootstrap.servers": bootstrap, "group.id": "torture", "isolation.level": level, **QUIET})
            for level in ("read_committed", "read_uncommitted")
        ]

    def look(self) -> None:
        looked = time.monotonic()
        try:
            stable, ends = (self._ends(reader) for reader in self._readers)
        except KafkaException:
            return
        for topic, partitions in self._topics:
            seen = [each for each in range(partitions) if (topic, each) in stable.keys() & ends.keys()]
            if seen:
                self._history.stable_seen(
                    topic=topic,
                    looked=looked,
                    stable={each: stable[topic, each] for each in seen},
                    ends={each: ends[topic, each] for each in seen},
                )

    def _ends(self, reader: Consumer) -> dict[tuple[str, int], int]:
        asked = [TopicPartition(topic, each, OFFSET_END) for topic, count in self._topics for each in range(count)]
        answers = reader.offsets_for_times(asked, timeout=ANSWER_SECONDS)
        return {
            (each.topic, each.partition): each.offset for each in answers if each.error is None and each.offset >= 0
        }


class Groups:
    """The offsets of groups, and then those that their runs have stored."""

    def __init__(self, bootstrap: str, watched: Sequence[Watched], history: History) -> None:
        self._watched, self._history = watched, history
        names = [name for each in watched for name in (each.group, each.progress_group) if name]
        self._readers = {
            name: Consumer({"bootstrap.servers": bootstrap, "group.id": name, "enable.auto.commit": False, **QUIET})
            for name in names
        }

    def look(self) -> None:
        for each in self._watched:
            looked = time.monotonic()
            with contextlib.suppress(KafkaException):
                committed = self._held(each.group, each)
                stored = self._held(each.progress_group, each) if each.progress_group else None
                self._history.group_seen(
                    group=each.group, topic=each.source, looked=looked, committed=committed, stored=stored
                )

    def _held(self, group: str, watched: Watched) -> dict[int, int]:
        wanted = [TopicPartition(watched.source, each) for each in range(watched.partitions)]
        found = self._readers[group].committed(wanted, timeout=ANSWER_SECONDS)
        for each in found:
            if each.error is not None:
                raise KafkaException(each.error)
        return {each.partition: each.offset for each in found if each.offset >= 0}


def main() -> None:
    """Look until whoever has started this closes its end of the pipe, or is gone."""
    spec = json.loads(Path(sys.argv[1]).read_text())
    history = History(Path(spec["history"]))
    watched = [Watched(**each) for each in spec["watched"]]
    stable, groups = (kind(spec["bootstrap"], watched, history) for kind in (Stable, Groups))
    for look, seconds in ((stable.look, STABLE_SECONDS), (groups.look, GROUPS_SECONDS)):
        threading.Thread(target=forever, args=(look, seconds), daemon=True).start()
    sys.stdin.read()
    os._exit(0)


def forever(look: Any, seconds: float) -> None:
    while True:
        look()
        time.sleep(seconds)


if __name__ == "__main__":
    main()
