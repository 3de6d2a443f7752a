"""A small torture as it should be, to plant anomalies in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.torture.checker.dump import Row, digest_of
from tests.torture.history import RUN_HEADER, Fate, Kind, RunKind
from tests.torture.proof.stage import NOW, Stage, Topic

FATES: Mapping[Kind, Fate] = {"good": 1, "poison": "dead", "filtered": 0, "too_large": "dead"}
MENDED: Mapping[Kind, Fate] = {"good": 1, "poison": 1, "filtered": 0, "too_large": "dead"}
COPIED: Mapping[Kind, Fate] = {"good": 1, "poison": 1, "filtered": 1, "too_large": "dead"}
PARTITIONS = 2
OUTPUTS = 2


def kind_of(number: int) -> Kind:
    if number % 7 == 3:
        return "poison"
    if number % 11 == 5:
        return "filtered"
    return "too_large" if number % 31 == 8 else "good"


@dataclass
class Staged:
    """One pipeline and its topics. What it does takes no time, and a clock that is told to go on."""

    stage: Stage
    name: str
    delivery: Literal["exactly_once", "at_least_once"] = "exactly_once"
    ordered: bool = True
    fates: Mapping[Kind, Fate] = field(default_factory=lambda: FATES)
    tells_run: bool = True

    def __post_init__(self) -> None:
        for topic in (self.name, f"{self.name}.out", f"{self.name}.dead"):
            self.stage.topics[topic] = Topic([0] * PARTITIONS)
        self.group = f"{self.name}-group"
        self.handled: dict[int, int] = dict.fromkeys(range(PARTITIONS), 0)
        self.runs = 0
        self.stage.history.declared(
            pipeline=self.name,
            group=self.group,
            source=self.name,
            destination=f"{self.name}.out",
            dead_letter=f"{self.name}.dead",
            delivery=self.delivery,
            ordered=self.ordered,
            fates=self.fates,
            tells_run=self.tells_run,
        )

    @property
    def source(self) -> Topic:
        return self.stage.topics[self.name]

    def feed(self, partition: int, count: int, transaction: Literal["none", "committed", "aborted"] = "none") -> None:
        sent: list[tuple[int, int | None, Kind]] = []
        for _ in range(count):
            number = self.stage.next_id()
            headers = [("torture", str(number)), ("empty", None)]
            row = Row(0, 0, str(number), digest_of(b"%d" % number), NOW + number, headers)
            sent.append((number, self.source.append(partition, row, transaction == "aborted"), kind_of(number)))
        self.source.ends[partition] += transaction != "none"
        self.stage.history.produced(topic=self.name, partition=partition, records=sent, transaction=transaction)

    def plan(self, kind: RunKind, ranges: Mapping[int, tuple[int, int]], **more: Any) -> str:
        self.runs += 1
        run = f"{self.name}/{kind}/{self.runs}"
        group = self.group if kind in ("live", "published") else f"{self.group}.backfill.{run}"
        topic = f"{self.name}.dead" if kind == "redrive" else self.name
        self.stage.history.planned(
            pipeline=self.name, run=run, kind=kind, number=self.runs, group=group, topic=topic, ranges=ranges, **more
        )
        return run

    def live(self, again: int = 0) -> None:
        """A whole run of all that is there; some of it is done again."""
        run = self.plan("live", {each: (self.handled[each], self.source.ends[each]) for each in range(PARTITIONS)})
        self.work(run, "failed", {}, self.handled, self.handled)
        before, after = dict(self.handled), dict(enumerate(self.source.ends))
        self.work(run, "success", self.fates, {each: at - again for each, at in before.items()}, after)
        told = []
        for each in range(PARTITIONS):
            self.stage.commit(f"{self.group}.kpipe", self.name, each, after[each])
            self.stage.commit(self.group, self.name, each, after[each])
            told.append(self._told(each, before[each], after[each], after[each]))
        self.handled = after
        self.stage.history.group_seen(
            group=self.group, topic=self.name, looked=self.stage.now, committed=after, stored=after
        )
        self.stage.history.checkpoint_told(pipeline=self.name, run=run, green=True, partitions=told)

    def backfill(self, start: int, end: int) -> None:
        run = self.plan("backfill", dict.fromkeys(range(PARTITIONS), (start, end)))
        windows = dict.fromkeys(range(PARTITIONS), start), dict.fromkeys(range(PARTITIONS), end)
        self.work(run, "success", self.fates, *windows)
        for each in range(PARTITIONS):
            self.stage.commit(f"{self.group}.backfill.{run}", self.name, each, end)
        told = [self._told(each, start, end, end) for each in range(PARTITIONS)]
        self.stage.history.checkpoint_told(pipeline=self.name, run=run, green=True, partitions=told)

    def reset(self, partition: int, offset: int) -> None:
        began = self.stage.now
        self.stage.commit(self.group, self.name, partition, offset, "")
        self.handled[partition] = offset
        self.stage.history.group_reset(
            group=self.group, topic=self.name, offsets={partition: offset}, began=began, how="by hand"
        )

    def redrive(self) -> None:
        """Each record once, whatever letters it has."""
        dead = self.stage.topics[f"{self.name}.dead"]
        run = self.plan("redrive", {each: (0, dead.ends[each]) for each in range(PARTITIONS)}, fates=MENDED)
        self.stage.history.task_begun(pipeline=self.name, run=run, task="redrive", attempt=1)
        counts, seen = {"written": 0, "dead_lettered": 0}, set()
        for row in list(dead.rows):
            if row.key in seen:
                continue
            seen.add(row.key)
            self._out(run, row, MENDED, counts)
        self.stage.history.task_ended(pipeline=self.name, run=run, task="redrive", attempt=1, outcome="success")
        self.stage.history.redrive_told(
            pipeline=self.name, run=run, complete=True, outcomes={"redriven": len(seen)}, **counts
        )

    def work(
        self,
        run: str,
        outcome: Literal["success", "failed"],
        fates: Mapping[Kind, Fate],
        starts: Mapping[int, int],
        ends: Mapping[int, int],
    ) -> None:
        """A try of the run task. One that fails leaves a record that nobody is to see."""
        self.stage.history.task_begun(pipeline=self.name, run=run, task="run", attempt=1)
        for row in list(self.source.rows):
            if starts[row.partition] <= row.offset < ends[row.partition]:
                self._out(run, row, fates, {})
        if outcome == "failed":
            self.stage.topics[f"{self.name}.out"].append(0, self.source.rows[0], aborted=True)
            self.see_stable(held=1)
        for topic in (f"{self.name}.out", f"{self.name}.dead"):
            self.stage.topics[topic].ends = [end + 1 for end in self.stage.topics[topic].ends]
        self.stage.history.task_ended(pipeline=self.name, run=run, task="run", attempt=1, outcome=outcome)
        self.see_stable()

    def see_stable(self, held: int = 0) -> None:
        for topic in (f"{self.name}.out", f"{self.name}.dead"):
            ends = dict(enumerate(self.stage.topics[topic].ends))
            stable = {each: max(0, end - held) for each, end in ends.items()}
            self.stage.history.stable_seen(topic=topic, looked=self.stage.now, stable=stable, ends=ends)

    def _out(self, run: str, row: Row, fates: Mapping[Kind, Fate], counts: dict[str, int]) -> None:
        number = int(row.key or 0)
        fate = fates[kind_of(number)]
        own = [each for each in row.headers if not each[0].startswith("kpipe-")]
        if fate == "dead":
            topic, attempt = f"{self.name}.dead", int(row.header("kpipe-dead-letter-attempt") or 0)
            source = topic if attempt else self.name
            headers = [*own, *self._story(run, source, row, attempt + 1)]
            self.stage.topics[topic].append(row.partition, row._replace(headers=headers))
            counts["dead_lettered"] = counts.get("dead_lettered", 0) + 1
        for _ in range(fate if isinstance(fate, int) else 0):
            headers = [*own, (RUN_HEADER, run)] if self.tells_run else list(own)
            self.stage.topics[f"{self.name}.out"].append(number % OUTPUTS, row._replace(headers=headers))
            counts["written"] = counts.get("written", 0) + 1

    def _story(self, run: str, source: str, row: Row, attempt: int) -> list[tuple[str, str | None]]:
        return [
            ("kpipe-pipeline", self.name),
            ("kpipe-run-key", run),
            ("kpipe-source-topic", source),
            ("kpipe-source-partition", str(row.partition)),
            ("kpipe-source-offset", str(row.offset)),
            ("kpipe-fault-kind", "segment"),
            ("kpipe-fault-exception", "ValueError"),
            ("kpipe-dead-letter-attempt", str(attempt)),
        ]

    def _told(self, partition: int, start: int, end: int, committed: int) -> dict[str, Any]:
        numbers = [
            int(row.key or 0) for row in self.source.rows if row.partition == partition and start <= row.offset < end
        ]
        fates = [self.fates[kind_of(number)] for number in numbers]
        return {
            "partition": partition,
            "start": start,
            "end": end,
            "committed": committed,
            "complete": True,
            "read": len(numbers),
            "written": sum(each for each in fates if isinstance(each, int)),
            "dead_lettered": fates.count("dead"),
            "filtered": fates.count(0),
            "skipped": 0,
            "retried": 0,
            "lost": 0,
        }


def stage(folder: Path, scale: int = 1) -> None:
    """A torture with everything in it that an anomaly can be planted in."""
    made = Stage(folder)
    made.history.begun(seed=1, minutes=0.1, commit="staged", started="2026-01-01T00:00:00+00:00")
    orders = Staged(made, "orders")
    copies = Staged(made, "copies", ordered=False, fates=COPIED, tells_run=False)
    doubles = Staged(made, "doubles", delivery="at_least_once")
    for each in (orders, copies, doubles):
        for partition in range(PARTITIONS):
            each.feed(partition, 40 * scale)
            each.feed(partition, 10, "aborted")
        each.live()
        made.history.fault_begun(fault=each.runs, kind="kill worker", target="1", outage=False)
        made.history.fault_ended(fault=each.runs, effect="pid 1 died")
        for partition in range(PARTITIONS):
            each.feed(partition, 20 * scale, "committed")
        each.live(again=5 if each is doubles else 0)
    orders.backfill(5, 25)
    copies.backfill(0, 12)
    orders.reset(0, 15)
    orders.feed(0, 10)
    orders.live()
    orders.redrive()
    # A last run, with nothing to do.
    orders.plan("live", {each: (at, at) for each, at in orders.handled.items()})
    for each in (orders, copies, doubles):
        made.history.drained(pipeline=each.name, partitions=each.handled)
    made.close({each.group: {each.name: each.handled} for each in (orders, copies, doubles)})
