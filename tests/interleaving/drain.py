"""The end of a schedule: everything is read, and whoever is left over comes late."""

from __future__ import annotations

import random

from tests.interleaving.world import World
from tests.promises.properties import DRAINED

MOST_ROUNDS, MOST_REDRIVES = 4, 2
MOST_LAST_RUNS = MOST_ROUNDS + MOST_REDRIVES


def drain(world: World, rnd: random.Random, redrives: bool) -> None:
    """Read everything to its end, disturbed by nobody; then whoever is left over goes on, and old checkpoints come."""
    world.note("nobody disturbs any more")
    last = None
    for _ in range(MOST_ROUNDS):
        last = world.plan("live")
        if last is None or not last.plan.pending:
            break
        for hand in world.attempt(last):
            world.finish(hand)
        if not world.checkpoint(last):
            world.model.flag(DRAINED.broken(f"{last.plan.run_key} was not disturbed, and is not complete"))
    if last is None or last.plan.pending:
        world.model.flag(DRAINED.broken("the last plans left something to do"))
    world.model.drained = True
    for hand in list(world.hands):
        world.finish(hand)
    for order in rnd.sample(world.orders, min(3, len(world.orders))):
        if order.run:
            world.checkpoint(order)
    world.bring_out_the_dead()
    if redrives:
        redrive(world, rnd.choice((0, 1, MOST_REDRIVES)))


def redrive(world: World, times: int) -> None:
    """All that is left of the letters; when it is asked for once more, that is nothing."""
    for _ in range(times):
        order = world.order_redrive()
        for hand in world.attempt(order):
            world.finish(hand)
        world.tell_redriven(order)
        world.model.redriven_all = True
