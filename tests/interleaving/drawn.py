"""Which pipeline a schedule is about: drawn from the seed, too."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from interleaving_kit import outputs_of

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.pipeline.scaling import ExecutionMode, RebalanceMode
from tests.kit.pipelines import Bench
from tests.promises.model import Model

RELAXED: ExecutionMode = "relax_ordering_within_partition"
HANDLERS = {
    "copy": ((), 1),
    "records": (("interleaving_kit:sort_out",), 1),
    "threads": (("interleaving_kit:sort_out",), 4),
    "async": (("interleaving_kit:sort_out_async",), 4),
    "batch": (("interleaving_kit:sort_out_batch",), 1),
}
DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "exactly_once", "at_least_once")
YIELDS: tuple[RebalanceMode, ...] = ("drain_and_yield", "stop_accepting_new_work_and_yield")
# Records are sent at once, or not before somebody waits for them: what a kill takes along depends on no clock.
LINGERS = ("0", "60000")


def draw_pipeline(rnd: random.Random, bootstrap: str) -> tuple[str, Bench, Model]:
    """Its handler, its topics, and what is expected of it."""
    handler = rnd.choice(sorted(HANDLERS))
    segments, in_flight = HANDLERS[handler]
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
    return handler, replace(bench, written_login={"linger.ms": rnd.choice(LINGERS)}), model
