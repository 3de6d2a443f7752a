"""Each fault that is planted in the product is noticed: otherwise a schedule that finds nothing would mean nothing."""

from __future__ import annotations

import pytest

from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.interleaving.outputs import output_topics
from tests.interleaving.planted import PLANTED, Plant
from tests.interleaving.schedule import Schedule

MOST_SCHEDULES = 10


@pytest.mark.parametrize(("plant", "seed"), PLANTED.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_it_is_noticed(broker: SandboxBroker, plant: Plant, seed: int) -> None:
    for each in range(seed, seed + MOST_SCHEDULES):
        schedule = Schedule(each, broker.bootstrap_servers, output_topics(broker.bootstrap_servers))
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            if schedule.run():
                return
    pytest.fail(f"{plant.__name__} was not noticed in {MOST_SCHEDULES} schedules from SEED={seed}")


def test_a_seed_makes_the_same_schedule_again(broker: SandboxBroker) -> None:
    told = []
    for _ in range(2):
        schedule = Schedule(1, broker.bootstrap_servers, output_topics(broker.bootstrap_servers))
        assert schedule.run() == []
        told.append(schedule.told.replace(schedule.world.bench.topic, "topic"))
    assert told[0] == told[1]
