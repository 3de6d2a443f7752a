from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import (
    KafkaDeadLetter,
    KafkaDestination,
    KafkaPipeline,
    KafkaSource,
)
from airflow_provider_kpipe.contract.pipeline.policies import DeadLetterBudget
from airflow_provider_kpipe.contract.progress.progress import Counts
from kpipe_engine.assignment.run_monitor import NoMonitor, SharedMonitor
from kpipe_engine.errors import BudgetExceededError, PartitionHaltedError
from kpipe_engine.wiring import choose_monitor
from tests.kit.plans import plan_of


class Others:
    """All others at work on a run: what they have stored by slot, and what is known of it since the last looks."""

    slots = (0, 1)

    def __init__(self) -> None:
        self.stopped: tuple[int, str] | None = None
        self.stored: dict[int, Counts] = {}
        self._seen: dict[int, Counts] = {}

    def look(self, slots: Collection[int] | None = None) -> None:
        self._seen.update({slot: stored for slot, stored in self.stored.items() if slots is None or slot in slots})

    @property
    def counts(self) -> Counts:
        return sum(self._seen.values(), Counts())


def others() -> Any:
    return Others()


class World:
    """A monitor over one range, and the records that come."""

    def __init__(self, budget: DeadLetterBudget, slots: Iterable[int] = (0,)) -> None:
        self.others = others()
        self.own = Counts()
        self.watch = SharedMonitor(self.others, list(slots), budget, lambda: [self.own])

    def fault(self, count: int, *, as_dead_letter: bool = True) -> None:
        for _ in range(count):
            self.watch.allow_fault(as_dead_letter=as_dead_letter)
            self.own += Counts(read=1, dead_lettered=1) if as_dead_letter else Counts(read=1, skipped=1)

    def write(self, count: int) -> None:
        self.own += Counts(read=count, written=count)


HALF = DeadLetterBudget(max_dead_letter_ratio=0.5)
POISON = Counts(read=1_000, dead_lettered=1_000)


def test_a_healthy_chunk_is_stored_whatever_becomes_of_the_others_meanwhile() -> None:
    world = World(HALF)
    world.watch.look()
    world.others.stored = {0: POISON, 1: POISON}
    world.write(500)
    world.fault(500)
    world.watch.check()


def test_a_chunk_in_which_most_records_fault_is_given_up_for_what_all_have_counted() -> None:
    world = World(HALF)
    world.watch.look()
    world.others.stored = {0: Counts(read=20, written=20), 1: Counts(read=30, dead_lettered=10, written=20)}
    world.fault(180)
    world.write(100)
    with pytest.raises(BudgetExceededError, match="190 of 330 records faulted"):
        world.watch.check()


def test_a_flood_is_noticed_in_the_midst_of_a_chunk() -> None:
    world = World(HALF)
    world.watch.look()
    with pytest.raises(BudgetExceededError, match="of them: the chunk in which that was found is given up"):
        world.fault(10_000)
    assert world.own.dead_lettered == 1_999


def test_other_partitions_make_up_for_one_that_is_all_poison() -> None:
    world = World(HALF)
    world.watch.look()
    world.others.stored = {1: Counts(read=10_000, written=10_000)}
    world.fault(9_000)
    world.watch.check()


def test_each_chunk_may_ask_the_others_once() -> None:
    world = World(HALF)
    world.watch.look()
    world.others.stored = {1: Counts(read=1_000, written=1_000)}
    world.fault(900)
    world.watch.check()
    world.others.stored = {1: Counts(read=10_000, written=10_000)}
    world.fault(200)
    with pytest.raises(BudgetExceededError, match="1100 of 2100 records faulted"):
        world.watch.check()
    world.watch.look()
    world.watch.check()


@pytest.mark.parametrize(("slots", "heeded"), [([0], 0), ([0, 1], 1)])
def test_before_a_chunk_only_the_watched_slots_are_looked_at(slots: list[int], heeded: int) -> None:
    world = World(DeadLetterBudget(max_dead_letters=5), slots)
    world.others.stored = {1: Counts(read=1, dead_lettered=1)}
    world.watch.look()
    world.fault(5 - heeded)
    assert world.others.counts.dead_lettered == heeded


def test_a_share_that_others_exceed_too_counts_from_their_records_on() -> None:
    world = World(HALF)
    world.watch.look()
    world.others.stored = {1: Counts(read=60, dead_lettered=60)}
    world.fault(40)
    with pytest.raises(BudgetExceededError, match="100 of 100 records faulted"):
        world.watch.check()


def test_a_skipped_record_is_a_fault_without_a_dead_letter() -> None:
    skips = World(DeadLetterBudget(max_dead_letters=0))
    skips.watch.look()
    skips.fault(500, as_dead_letter=False)
    skips.watch.check()

    floods = World(HALF)
    floods.watch.look()
    with pytest.raises(BudgetExceededError):
        floods.fault(10_000, as_dead_letter=False)


@pytest.mark.parametrize("elsewhere", [0, 2])
def test_one_dead_letter_above_the_limit_is_refused_at_once(elsewhere: int) -> None:
    world = World(DeadLetterBudget(max_dead_letters=3))
    world.others.stored = {0: Counts(read=100, dead_lettered=elsewhere)}
    world.watch.look()
    world.fault(3 - elsewhere)
    with pytest.raises(BudgetExceededError, match="more than max_dead_letters=3 dead letters in this run"):
        world.fault(1)


def test_a_chunk_that_is_redone_is_counted_again() -> None:
    world = World(DeadLetterBudget(max_dead_letters=3))
    for _ in range(5):
        world.watch.look()
        world.fault(3)
        world.own = Counts()


def test_a_partition_that_stopped_the_pipeline_is_heeded() -> None:
    world = World(HALF)
    world.others.stopped = (4, "offset 7: broken")
    with pytest.raises(PartitionHaltedError, match="partition 4 stopped the pipeline: offset 7: broken"):
        world.watch.look()


@pytest.mark.parametrize(
    ("changes", "slots"),
    [
        ({}, [1]),
        ({"max_dead_letters": 5}, [0, 2]),
        ({"on_fault": "orders:choose"}, [0, 2]),
        ({"on_fault": "stop_pipeline"}, [0, 2]),
        ({"on_fault": "skip"}, [1]),
        ({"max_dead_letter_ratio": None}, None),
        ({"on_fault": "stop_partition"}, None),
    ],
    ids=repr,
)
def test_only_what_may_matter_is_looked_at(changes: dict[str, Any], slots: list[int] | None) -> None:
    pipeline = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"), dead_letter=KafkaDeadLetter("d"))
    cut = PartitionRange(0, 0, 90, 0, cuts=(30, 60))
    job = Job(replace(pipeline, **changes), plan_of(cut))
    store: Any = None
    watch = choose_monitor(job, store, cut.pieces[1:2], list)
    if slots is None:
        assert isinstance(watch, NoMonitor)
    else:
        assert isinstance(watch, SharedMonitor)
        assert sorted(watch._slots) == slots
