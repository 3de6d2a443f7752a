"""A seeded schedule: which pipeline it is, and who does what when."""

from __future__ import annotations

import functools
import random
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, TopicPartition
from interleaving_kit import outputs_of
from pipelines import Bench

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.contract.pipeline import Delivery
from airflow_provider_kpipe.contract.scaling import RebalanceMode
from airflow_provider_kpipe.kafka import committer, planner
from airflow_provider_kpipe.sandbox import create_topics
from kpipe_engine import recovery
from tests.interleaving.model import Model
from tests.interleaving.world import Hand, Order, World, stalling

RELAXED = "relax_ordering_within_partition"
HANDLERS = {
    "copy": ((), 1),
    "records": (("interleaving_kit:sort_out",), 1),
    "threads": (("interleaving_kit:sort_out",), 4),
    "async": (("interleaving_kit:sort_out_async",), 4),
    "batch": (("interleaving_kit:sort_out_batch",), 1),
}
DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "exactly_once", "exactly_once", "at_least_once")
YIELDS: tuple[RebalanceMode, ...] = ("drain_and_yield", "stop_accepting_new_work_and_yield")
KILLS = ("killed before it is sent", "killed before it stores", "killed after it has stored")
MOST_RUNS = 16
# A drain that nobody disturbs.
MOST_ROUNDS = 4
ROOM_IN_THE_END = MOST_ROUNDS + 1


class Schedule:
    """What happens is drawn from the seed alone."""

    def __init__(self, seed: int, bootstrap: str, outputs: dict[str, int]) -> None:
        self.seed, self.rnd = seed, random.Random(f"interleaving {seed}")
        rnd = self.rnd
        self.handler = rnd.choice(sorted(HANDLERS))
        segments, in_flight = HANDLERS[self.handler]
        relaxed = in_flight > 1 or rnd.random() < 0.5
        delivery = rnd.choice(DELIVERIES)
        scaling = PartitionScaling(
            RELAXED if relaxed else "preserve_partition_order",
            max_in_flight_per_partition=in_flight,
            rebalance_mode=rnd.choice(YIELDS),
        )
        bench = Bench.make(
            bootstrap,
            partitions=rnd.choice((1, 1, 2)),
            outputs=1,
            segments=segments,
            delivery=delivery,
            scaling=scaling,
            chunk_records=rnd.choice((3, 5, 8)),
            chunk_seconds=60.0,
            max_dead_letter_ratio=None,
        )
        fate: Callable[[int], int | None] = outputs_of if segments else lambda _: 1
        model = Model(delivery == "exactly_once", not relaxed, fate)
        self.world = World(bench, model, outputs, ends_open=rnd.random() < 0.5)
        self.world.meanwhile = self.disturb
        self.world.note(
            f"{self.handler}, {scaling.execution_mode}, {delivery}, chunks of {bench.pipeline.chunk_records}"
        )

    @property
    def told(self) -> str:
        """How it comes again, and what has happened so far."""
        return "\n".join([f"SEED={self.seed} make interleave   # replays this schedule:", *self.world.history])

    def run(self) -> list[str]:
        """All anomalies."""
        world, rnd = self.world, self.rnd
        with self.harness():
            try:
                for partition in list(world.sizes):
                    world.feed(partition, rnd.randint(8, 20))
                for _ in range(rnd.randint(8, 20)):
                    rnd.choices(list(STEPS), list(STEPS.values()))[0](self)
                self.drain()
                return world.model.check(world.found())
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

    def window(self) -> None:
        windows = {}
        for partition, size in self.world.sizes.items():
            start = self.rnd.choice((0, self.rnd.randint(0, size)))
            windows[partition] = (start, self.rnd.randint(start, size))
        if self.may_plan:
            order = self.world.window(self.rnd.random() < 0.5, windows)
            if order:
                self.world.attempt(order, self.trap(0.1))

    def redrive(self) -> None:
        if self.may_plan and (order := self.world.order_redrive()):
            for hand in self.world.attempt(order):
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
        held = self.world.held()
        if held and not self.world.depth:
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

    def trap(self, probability: float) -> str | None:
        if self.rnd.random() >= probability:
            return None
        return self.rnd.choice((*KILLS, "stall", "stall", "stall"))

    def drain(self) -> None:
        """Read everything to its end; then whoever is left over goes on, and old checkpoints come."""
        world = self.world
        world.note("nobody disturbs any more")
        last = None
        for _ in range(MOST_ROUNDS):
            last = world.plan("live")
            if last is None or not last.plan.pending:
                break
            for hand in world.attempt(last):
                world.finish(hand)
            if not world.checkpoint(last):
                world.model.flag(f"{last.plan.run_key} was not disturbed, and is not complete")
        if last is None or last.plan.pending:
            world.model.flag("the last plans left something to do")
        world.model.drained = True
        for hand in list(world.hands):
            world.finish(hand)
        for order in self.rnd.sample(world.orders, min(3, len(world.orders))):
            if order.run:
                world.checkpoint(order)
        world.bring_out_the_dead()
        self.redrive_all()

    def redrive_all(self) -> None:
        """What is left of the letters."""
        if self.handler == "copy" or self.rnd.random() < 0.5:
            return
        if (order := self.world.order_redrive()) is not None:
            for hand in self.world.attempt(order):
                self.world.finish(hand)
            self.world.model.redriven_all = True


STEPS: Mapping[Callable[[Schedule], None], int] = {
    Schedule.feed: 10,
    Schedule.grow: 1,
    Schedule.day: 8,
    Schedule.overlap: 12,
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


@functools.cache
def _made_topics(bootstrap: str) -> tuple[str, ...]:
    names = tuple(f"interleaved-{uuid.uuid4().hex[:8]}-{number}" for number in range(MOST_RUNS + ROOM_IN_THE_END))
    create_topics(bootstrap, *names)
    return names


def output_topics(bootstrap: str) -> dict[str, int]:
    """Topics for the outputs of one run each, and where they end. They serve one schedule after the other."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "tests-never-commit"})
    try:
        return {
            each: consumer.get_watermark_offsets(TopicPartition(each, 0), timeout=30)[1]
            for each in _made_topics(bootstrap)
        }
    finally:
        consumer.close()
