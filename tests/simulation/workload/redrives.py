"""Redrives of all dead letters that can be read."""

from __future__ import annotations

import random
from dataclasses import replace

from airflow_provider_kpipe.contract.offsets.limits import Earliest, Latest
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive.redrive import COUNTERS, Redrive, Selection, ledger_topic_of, redriving
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.redriving.ledger_topic import ensure_ledger
from airflow_provider_kpipe.redriving.planning import make_redrive_plan
from tests.kit.pipelines import earlier
from tests.simulation.workload.runs import DagRun
from tests.simulation.workload.world import NAME, Order, World

MENDED = ("interleaving_kit:untouched",)


class RedriveRun(DagRun):
    """Somebody presses the button."""

    def __init__(self, world: World, name: str, rnd: random.Random) -> None:
        super().__init__(world, name, rnd)

    def redrive(self) -> Order | None:
        order = self.order()
        if order is None:
            return None
        self.pause()
        for _ in range(self.rnd.choice((1, 2, 3))):
            if not order.plan.pending or self.attempt(order):
                break
        return order

    def order(self) -> Order | None:
        world, bench = self.world, self.world.bench
        ledger = ledger_topic_of(bench.pipeline)

        def body() -> Plan:
            plan = make_redrive_plan(
                bench.settings,
                bench.pipeline,
                Earliest(),
                Latest(),
                run_key=self.name,
                dry_run=False,
                created_at=earlier(),
            )
            with Positions(bench.settings) as positions:
                ensure_ledger(bench.settings, positions.topic(bench.dead), ledger)
            world.scene.play.check()
            return plan

        plan = world.in_airflow(f"{self.name} order", "redrive", body)
        if plan is None:
            return None
        world.log("REDRIVE", self.name, [(each.partition, each.start, each.end) for each in plan.ranges])
        redrive = Redrive("output", Selection(), None, None, ledger, NAME)
        segments = MENDED if bench.pipeline.segments else ()
        pipeline = replace(world.writing_to(self.name), segments=segments)
        order = Order(plan, redriving(pipeline), redrive=redrive)
        world.orders.append(order)
        return order

    def tell(self, order: Order) -> None:
        """Of one that has just come to its end: the next one stores in the same place."""
        with Positions(self.world.bench.settings) as positions:
            progress = positions.progress(order.plan)
        self.world.model.redriven_told[order.key] = sum(
            each.counts.named.get(COUNTERS["redriven"], 0) for each in progress
        )
