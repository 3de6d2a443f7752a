"""Rounds of works and contestants, in an order that is shuffled for every round, by a seed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from random import Random
from types import TracebackType
from typing import Self, cast

from bench.contestants import Contestant, Submitter
from bench.data import delete_topics, seed, written_topics
from bench.report import WARM_UP, Timing
from bench.work import Job, Mode, Records, Work
from bench.works import Heat

log = logging.getLogger("bench")


class Rounds:
    """All heats on one broker. Each contestant's session starts when it is first needed, and stays up.

    Every job writes to topics of its own, which are checked and deleted.
    """

    def __init__(self, bootstrap_servers: str, contestants: Sequence[Contestant], shuffle_seed: int) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._contestants = {each.name: each for each in contestants}
        self._random = Random(shuffle_seed)
        self._sessions = ExitStack()
        self._started: set[str] = set()
        self._jobs = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sessions.close()

    def measure(self, heat: Heat, warm_rounds: int, cold_rounds: int) -> list[Timing]:
        """Measure round after round: in each, every contestant does every work of the heat that it takes part in."""
        sources = list(dict.fromkeys(work.records for work in heat.works))
        for records in sources:
            self._seed(records)
        begin = WARM_UP if heat.warm_up else WARM_UP + 1
        timings = self._warm(heat.works, range(begin, warm_rounds + 1)) + self._cold(heat.works, cold_rounds)
        delete_topics(self._bootstrap_servers, [records.topic for records in sources])
        return timings

    def _seed(self, records: Records) -> None:
        log.info("seeding %s records into %s", f"{records.count:,}", records.topic)
        seed(self._bootstrap_servers, records)

    def _warm(self, works: Sequence[Work], rounds: range) -> list[Timing]:
        entries = [(work, self._started_one(name)) for work in works for name in work.warm]
        return [
            self._turn(work, contestant, "warm", number, contestant.run)
            for number in rounds
            for work, contestant in self._random.sample(entries, len(entries))
        ]

    def _cold(self, works: Sequence[Work], rounds: int) -> list[Timing]:
        entries = [(work, cast("Submitter", self._contestants[name])) for work in works for name in work.cold]
        return [
            self._turn(work, contestant, "cold", number, contestant.submit)
            for number in range(1, rounds + 1)
            for work, contestant in self._random.sample(entries, len(entries))
        ]

    def _started_one(self, name: str) -> Contestant:
        contestant = self._contestants[name]
        if name not in self._started:
            self._sessions.callback(contestant.close)
            contestant.start()
            self._started.add(name)
        return contestant

    def _turn(self, work: Work, contestant: Contestant, mode: Mode, number: int, run: Callable[[Job], float]) -> Timing:
        self._jobs += 1
        job = Job(work, self._bootstrap_servers, f"job-{self._jobs}")
        with written_topics(job):
            seconds = run(job)
            contestant.check(job)
        note = " (warm-up)" if (mode, number) == ("warm", WARM_UP) else ""
        log.info(
            "%-18s %s, round %d: %-32s %6.2f s %11s records/s%s",
            *(f"{work.name},", mode, number, contestant.name, seconds, f"{work.records.count / seconds:,.0f}", note),
        )
        return Timing(work.name, contestant.name, mode, number, work.records.count, round(seconds, 4))
