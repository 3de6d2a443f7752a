"""A seeded schedule: which pipeline it is, and who does what when."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest

from airflow_provider_kpipe.checkpointing import committer
from airflow_provider_kpipe.planning import ranges as planner
from kpipe_engine import chunk_retry as recovery
from tests.interleaving.drain import drain
from tests.interleaving.drawn import draw_pipeline
from tests.interleaving.hand import Hand
from tests.interleaving.world import Order, World, stalling
from tests.promises.comparison import check
from tests.promises.properties import Anomaly

KILLS = ("killed before it is sent", "killed before it stores", "killed after it has stored")
MOST_RUNS = 16


class Schedule:
    """What happens is drawn from the seed alone."""

    def __init__(self, seed: int, bootstrap: str, outputs: dict[str, int]) -> None:
        self.seed, self.rnd = seed, random.Random(f"interleaving {seed}")
        rnd = self.rnd
        self.handler, bench, model = draw_pipeline(rnd, bootstrap)
        self.world = World(bench, model, outputs, ends_open=rnd.random() < 0.5)
        self.world.meanwhile = self.disturb
        pipeline = bench.pipeline
        self.world.note(
            f"{self.handler}, {pipeline.partitions.execution_mode}, {pipeline.delivery}, "
            f"chunks of {pipeline.chunk_records}, {bench.written_login}"
        )

    @property
    def told(self) -> str:
        """How it comes again, and what has happened so far."""
        return "\n".join([f"SEED={self.seed} make interleave   # replays this schedule:", *self.world.history])

    def run(self) -> list[Anomaly]:
        """All anomalies."""
        world, rnd = self.world, self.rnd
        with self.harness():
            try:
                for partition in list(world.sizes):
                    world.feed(partition, rnd.randint(8, 24))
                for _ in range(rnd.randint(8, 20)):
                    rnd.choices(list(STEPS), list(STEPS.values()))[0](self)
                drain(world, rnd, redrives=self.handler != "copy")
                return check(world.model, world.found())
            finally:
                world.clean_up()

    @contextmanager
    def harness(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(planner, "SHORTEST_PIECE", 6)
            patch.setattr(planner, "MOST_PIECES", 3)
            patch.setattr(recovery, "LEASE_SECONDS", 0.0)
            patch.setattr(committer, "OffsetTransaction", stalling(self.world))
            yield

    # One step each.

    def feed(self) -> None:
        partition, count = self.rnd.choice(list(self.world.sizes)), self.rnd.randint(1, 12)
        self.world.feed(partition, count, self.rnd.choice(("plain", "plain", "committed", "aborted")))

    def grow(self) -> None:
        if len(self.world.sizes) < 3:
            self.world.grow()

    def plan(self) -> None:
        caps = {"max_records": self.rnd.randint(3, 15)} if self.rnd.random() < 0.25 else {}
        if self.may_plan:
            order = self.world.plan("live", **caps)
            if order and self.rnd.random() < 0.7:
                self.world.attempt(order, self.trap(0.2))

    def day(self) -> None:
        """A run as it should be, whose checkpoint may never come."""
        if self.may_plan and (order := self.world.plan("live")):
            for hand in self.world.attempt(order):
                self.world.finish(hand)
            if self.rnd.random() < 0.7:
                self.world.checkpoint(order)

    def overlap(self) -> None:
        """Runs that were planned before any of them was over, and whose checkpoints come in any order."""
        orders = []
        for _ in range(self.rnd.choice((2, 2, 3))):
            if self.may_plan and (order := self.world.plan("live")):
                orders.append(order)
            if self.rnd.random() < 0.5:
                self.feed()
        self.rnd.shuffle(orders)
        for order in orders:
            if self.rnd.random() < 0.85:
                self.world.attempt(order, self.trap(0.2))
            for _ in range(self.rnd.randint(1, 5)):
                self.work()
        for order in self.rnd.sample(orders, self.rnd.randint(0, len(orders))):
            self.world.stale_look = self.rnd.random() < 0.4
            self.world.checkpoint(order)
            self.work()

    def hand_over(self) -> None:
        """Somebody puts the group elsewhere; the first run from there leaves a part to one that tells of both."""
        self.reset()
        for far in (self.world.step, self.world.finish):
            order = self.world.plan("live") if self.may_plan else None
            for hand in self.world.attempt(order) if order else ():
                for _ in range(2):
                    if hand.state in ("new", "open"):
                        far(hand)
        if order:
            self.world.checkpoint(order)

    def outlive(self) -> None:
        """Somebody stands still over a chunk while a newer run begins, and goes on after that."""
        if not self.may_plan or not (hand := self.some_owner() or self.begun()):
            return
        for _ in range(self.rnd.choice((1, 1, 2))):
            self.world.step(hand)
        hand.trap, self.world.meanwhile = "stall", self.succeed
        if hand.state in ("new", "open"):
            self.world.step(hand)
        self.world.meanwhile = self.disturb
        if self.rnd.random() < 0.7:
            self.world.finish(hand)

    def begun(self) -> Hand | None:
        """Somebody of a run that has just begun; of a partition in pieces, mostly one that is not the first."""
        self.world.feed(self.rnd.choice(list(self.world.sizes)), self.rnd.randint(12, 20))
        order = self.world.plan("live")
        return self.some_of(self.world.attempt(order) if order else [])

    def succeed(self) -> None:
        """A newer run, in front of which somebody may have put the group elsewhere, comes more or less far."""
        if self.rnd.random() < 0.3:
            self.put()
        if self.may_plan and (order := self.world.plan("live")):
            hands = self.world.attempt(order)
            for hand in self.rnd.sample(hands, self.rnd.randint(0, len(hands))):
                self.rnd.choice((self.world.step, self.world.finish))(hand)
            if self.rnd.random() < 0.4:
                self.world.checkpoint(order)

    def overtaken(self) -> None:
        """A checkpoint stands still before it commits, while a newer run comes to its end and is published."""
        if self.may_plan and (order := self.world.plan("live")):
            for hand in self.world.attempt(order):
                self.rnd.choice((self.world.step, self.world.finish, self.world.finish))(hand)
            self.world.stale_look, self.world.meanwhile = True, self.go_further
            self.world.checkpoint(order)
            self.world.meanwhile = self.disturb

    def go_further(self) -> None:
        self.feed()
        if self.may_plan and (order := self.world.plan("live")):
            for hand in self.world.attempt(order):
                self.world.finish(hand)
            self.world.checkpoint(order)

    def window(self) -> None:
        windows = {}
        for partition, size in self.world.sizes.items():
            start = self.rnd.choice((0, self.rnd.randint(0, size)))
            windows[partition] = (start, self.rnd.randint(start, size))
        if self.may_plan and (order := self.world.window(self.rnd.random() < 0.5, windows)):
            hands = self.world.attempt(order, self.trap(0.1))
            # Otherwise somebody else may come to them later.
            if self.rnd.random() < 0.6:
                for hand in hands:
                    self.world.finish(hand)
                self.world.checkpoint(order)

    def redrive(self) -> None:
        if self.may_plan:
            for hand in self.world.attempt(self.world.order_redrive()):
                hand.trap = self.trap(0.5)

    def attempt(self) -> None:
        """Of the latest plan mostly, and sometimes of one that is long over."""
        if order := self.some_order(self.world.orders):
            self.world.attempt(order, self.trap(0.2))

    def work(self) -> None:
        if hand := self.some_hand():
            hand.trap = self.trap(0.35)
            self.world.step(hand)

    def finish(self) -> None:
        if hand := self.some_hand():
            self.world.finish(hand)

    def kill(self) -> None:
        if hand := self.some_hand():
            self.world.bury(hand)

    def yields(self) -> None:
        if (hand := self.some_hand()) and hand.state == "open":
            self.world.yields(hand)

    def checkpoint(self) -> None:
        if order := self.some_order([each for each in self.world.orders if each.run]):
            self.world.stale_look = self.world.depth == 0 and self.rnd.random() < 0.25
            self.world.checkpoint(order)

    def reset(self) -> None:
        if not self.world.depth:
            self.put()

    def put(self) -> None:
        if held := self.world.held():
            partition = self.rnd.choice(sorted(held))
            to = self.rnd.choice((0, held[partition], self.rnd.randint(0, held[partition])))
            self.world.reset(partition, to)

    def delete_group(self) -> None:
        if not self.world.depth:
            self.world.delete_group()

    def disturb(self) -> None:
        """What happens while somebody stands still."""
        others = (Schedule.plan, Schedule.attempt, Schedule.work, Schedule.finish, Schedule.day, Schedule.checkpoint)
        for other in self.rnd.choices(others, (1, 2, 4, 2, 2, 4), k=self.rnd.randint(1, 5)):
            other(self)

    # Whom it concerns.

    @property
    def may_plan(self) -> bool:
        return len(self.world.orders) < MOST_RUNS

    def some_order(self, orders: list[Order]) -> Order | None:
        if not orders:
            return None
        return orders[-1] if self.rnd.random() < 0.5 else self.rnd.choice(orders)

    def some_hand(self) -> Hand | None:
        free = [each for each in self.world.hands if each.state in ("new", "open")]
        return self.rnd.choice(free) if free else None

    def some_owner(self) -> Hand | None:
        """Somebody whom no later run has taken the partition from."""
        if self.rnd.random() < 0.4:
            return None
        return self.some_of([each for each in self.world.hands if not self.world.is_taken_from(each)])

    def some_of(self, hands: list[Hand]) -> Hand | None:
        free = [each for each in hands if each.state in ("new", "open")]
        return self.rnd.choice([each for each in free if each.slot] or free) if free else None

    def trap(self, probability: float) -> str | None:
        if self.rnd.random() >= probability:
            return None
        return self.rnd.choice((*KILLS, "stall", "stall", "stall"))


STEPS: Mapping[Callable[[Schedule], None], int] = {
    Schedule.feed: 10,
    Schedule.grow: 1,
    Schedule.day: 8,
    Schedule.overlap: 12,
    Schedule.hand_over: 8,
    Schedule.outlive: 20,
    Schedule.overtaken: 5,
    Schedule.plan: 4,
    Schedule.window: 4,
    Schedule.redrive: 2,
    Schedule.attempt: 9,
    Schedule.work: 34,
    Schedule.finish: 14,
    Schedule.kill: 5,
    Schedule.yields: 4,
    Schedule.checkpoint: 14,
    Schedule.reset: 8,
    Schedule.delete_group: 3,
}
