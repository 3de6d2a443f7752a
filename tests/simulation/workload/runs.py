"""Runs: planned, attempted by workers that die and yield, and published."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_kpipe.checkpointing.committer import publish
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.limits import Committed, Explicit
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.progress import StoredProgress
from airflow_provider_kpipe.exceptions import GroupMovedError, PlanError, StalePlanError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.running.attempts import begin_attempt
from airflow_provider_kpipe.running.stop_requests import request_stop
from airflow_provider_kpipe.transactions.left_open import end_what_is_left_open
from kpipe_engine.assignment.precautions import Precautions
from kpipe_engine.stop_signal import KafkaStopSignal, StopSignal
from kpipe_engine.wiring import build_worker
from tests.promises.model import Kind, Run, Told
from tests.promises.properties import REFUSED
from tests.simulation.clock import VirtualTime
from tests.simulation.kafka.groups import Held
from tests.simulation.processes import Task
from tests.simulation.scheduler import FOREVER
from tests.simulation.workload.world import NAME, Order, World

PAUSES = (0.0, 0.0, 0.0, 0.1, 2.0, 50.0)
"""Between the steps of a DAG run."""


@dataclass(slots=True)
class Working:
    """A Spark task: who looks after its workers, and they themselves."""

    supervisor: Task
    workers: list[Task] = field(default_factory=list)


class DagRun:
    """One run of the pipeline's DAG, or what is left of it when somebody clears tasks."""

    def __init__(self, world: World, name: str, rnd: random.Random) -> None:
        self.world, self.name, self.rnd = world, name, rnd
        self.tries = 0

    # Planned

    def go(self, kind: Kind = "live", **wishes: Any) -> Order | None:
        world, rnd = self.world, self.rnd
        order = self.plan(kind, **wishes)
        if order is None:
            return None
        self.pause()
        for _ in range(1 if world.is_final else rnd.choice((0, 1, 1, 1, 2, 2, 3))):
            if not order.plan.pending or self.attempt(order):
                break
        self.pause()
        if world.is_final or rnd.random() < 0.8:
            self.checkpoint(order)
        return order

    def idle(self) -> Order | None:
        """Its run task never begins, and its checkpoint comes all the same."""
        order = self.plan("live")
        if order is not None:
            self.checkpoint(order)
        return order

    def torn(self) -> Order | None:
        """One of its Spark tasks never begins: of a range in pieces, there is a gap."""
        order = self.plan("live")
        if order is not None:
            if order.plan.pending:
                self.attempt(order, left_out=1)
            self.checkpoint(order)
        return order

    def unseen(self) -> Order | None:
        """Its checkpoint never comes."""
        order = self.plan("live")
        if order is not None and order.plan.pending:
            self.attempt(order)
        return order

    def pause(self) -> None:
        if not self.world.is_final and (seconds := self.rnd.choice(PAUSES)):
            self.world.scene.sleep(seconds)

    def plan(self, kind: Kind, **wishes: Any) -> Order | None:
        world, key = self.world, self.name
        wishes = {"start": Committed("earliest"), **wishes}

        def body() -> tuple[Plan, Run, Mapping[tuple[str, int], Held]]:
            stored = world.stored()
            plan = world.bench.plan(key, publish=kind == "published", **wishes)
            # The process may have died with the answer in hand: nobody has it then.
            world.scene.play.check()
            ranges = {world.known_as(each.partition): (each.start, each.end) for each in plan.ranges}
            held = {world.known_as(each.partition): each.committed or 0 for each in plan.ranges}
            return plan, world.model.plan(key, kind, ranges, held), stored

        made = world.shared(f"{key} plan", "plan", body)
        if made is None:
            return None
        plan, run, stored = made
        shown = [(each.partition, each.start, each.end, each.committed, each.cuts, each.done) for each in plan.ranges]
        world.log("PLAN", key, kind, plan.number, shown)
        order = Order(plan, world.writing_to(key), run, known=stored)
        world.orders.append(order)
        return order

    def window(self, kind: Kind) -> Order | None:
        """A backfill of any stretch of what is there."""
        world, rnd = self.world, self.rnd
        start, end = {}, {}
        for partition in range(world.partitions):
            log = world.scene.cluster.log(NAME, partition)
            first, after = log.start, log.stable_end
            start[partition] = rnd.choice((first, rnd.randint(first, after)))
            end[partition] = rnd.randint(start[partition], after)
        return self.go(kind, start=Explicit(start), end=Explicit(end))

    # Attempted

    def attempt(self, order: Order, left_out: int = 0) -> bool:
        """Whether all of it was read to its end; so many tasks are left out."""
        world, rnd, plan = self.world, self.rnd, order.plan
        self.tries += 1
        name = f"{self.name}/{order.key}-{self.tries}"
        begun = world.in_airflow(f"{name} begin", "begin", lambda: begin_attempt(world.bench.settings, plan), 2)
        if begun is None:
            return False
        deadline = None
        if not world.is_final and rnd.random() < (0.5 if world.script.setup.clocks_disagree else 0.08):
            deadline = VirtualTime.time() + rnd.choice((0.05, 0.3, 30.0))
        job = Job(order.pipeline, plan, begun.number, deadline, order.redrive, checkpointed=begun.checkpointed)
        world.log("ATTEMPT", name, job.attempt, list(begun.checkpointed))
        self.end_open(name, plan)
        if not world.in_airflow(f"{name} claim", "claim", lambda: self.claim(job), 1):
            return False
        blocks = list(plan.blocks)
        rnd.shuffle(blocks)
        working = [self.work(job, block, number, name) for number, block in enumerate(blocks[left_out:], 1)]
        self.watch(working, job)
        whole = not left_out and all(each.supervisor.done and is_whole(each.supervisor.result) for each in working)
        if not whole:
            self.end_open(f"{name} after", plan)
        return whole

    def claim(self, job: Job) -> bool:
        """What the driver does before its tasks begin."""
        for planned in job.plan.pending:
            if planned.cuts:
                precautions = Precautions(stops={planned.partition: "it is only taken on"})
                worker = build_worker(
                    job, self.world.bench.kafka, planned.pieces[:1], StopSignal(), precautions=precautions
                )
                try:
                    worker.open()
                finally:
                    worker.close()
        return True

    def work(self, job: Job, block: tuple[PartitionRange, ...], number: int, name: str) -> Working:
        """A Spark task, which starts another worker where one dies."""
        world, scene = self.world, self.world.scene
        label = f"{name}:{number}@{','.join(f'{each.partition}.{each.slot}' for each in block)}"
        stop_signal = StopSignal(job.deadline)
        world.asked.append(stop_signal)

        def run() -> Any:
            if world.script.setup.listens:
                with KafkaStopSignal(job, world.bench.kafka.source) as listening:
                    return self.run_worker(job, block, listening, number, label)
            return self.run_worker(job, block, stop_signal, number, label)

        def supervise() -> Any:
            for again in range(2):
                worker = scene.spawn(f"{label}#{again}", "work", run)
                working.workers.append(worker)
                scene.wait(worker.has_ended)
                world.heed(worker)
                if not worker.process.dead:
                    return worker.result
            return None

        working = Working(scene.spawn(label, "supervisor", supervise))
        return working

    def run_worker(
        self, job: Job, block: tuple[PartitionRange, ...], stop_signal: StopSignal, number: int, label: str
    ) -> Any:
        progress = build_worker(job, self.world.bench.kafka, block, stop_signal, number).run()
        shown = [(each.range.partition, each.range.slot, each.next_offset, each.reason or "") for each in progress]
        self.world.log("DONE", label, shown)
        return progress

    def watch(self, working: list[Working], job: Job) -> None:
        """Airflow waits for the end; or loses sight of it, kills it, or asks it to yield."""
        world, rnd = self.world, self.rnd
        patient = world.is_final or rnd.random() < 0.65
        seconds = FOREVER if patient else rnd.choice((0.05, 0.2, 1.0, 30.0))
        if world.scene.wait(lambda: all(each.supervisor.done for each in working), seconds):
            return
        how = rnd.choice(("killed", "forgotten", "asked"))
        world.log("TASK", self.name, how)
        if how == "killed":
            for each in working:
                for task in (each.supervisor, *each.workers):
                    world.scene.kill(task)
        elif how == "asked" and world.script.setup.listens:
            name = f"{self.name} asks {job.attempt}"
            world.in_airflow(name, "stop", lambda: request_stop(world.bench.settings, job.plan, job.attempt, "stop"), 1)
        elif how == "asked":
            for stop_signal in world.asked[-len(working) :]:
                stop_signal.request("somebody asks")

    def end_open(self, name: str, plan: Plan) -> None:
        world = self.world
        if not (world.script.setup.ends_open and world.script.setup.exactly_once):
            return

        def body() -> bool:
            with Positions(world.bench.settings) as positions:
                end_what_is_left_open(positions, world.bench.settings, plan)
            return True

        world.in_airflow(f"{name} ends", "ends", body, 1)

    # Published

    def checkpoint(self, order: Order) -> bool:
        """Whether it was done."""
        world, run, setup = self.world, order.run, self.world.script.setup
        if run is None:
            return False
        ends = world.bench.settings if setup.ends_open and setup.exactly_once else None
        untold = {each: world.model.is_untold(run, each) for each in run.ranges}
        others = [each for each in world.model.moved if each.run is not run]
        self.tries += 1
        stored = world.stored()

        def body() -> Any:
            try:
                return publish(world.bench.settings, order.plan, ends)
            except (GroupMovedError, StalePlanError, PlanError) as refused:
                self.question(order, f"the checkpoint of {order.key}", refused)
                raise

        done = world.shared(f"{self.name} checkpoint {order.key}-{self.tries}", "checkpoint", body)
        if done is None:
            return False
        if order.plan.continues_group and stored == world.stored() and order is world.orders[-1]:
            world.told_of |= {
                at: held for at, held in stored.items() if is_of(order, held) or order.known.get(at) == held
            }
        self.note_told(run)
        alone = not any(each.run and each.run.kind == "published" for each in world.orders)
        calm = others == [each for each in world.model.moved if each.run is not run]
        for each in done.partitions:
            known, counts = world.known_as(each.partition), each.counts
            newer = world.has_newer(order, known) or self.begins_below(order, each.partition)
            told = (counts.read, counts.written, counts.dead_lettered, counts.filtered)
            first = untold[known] and calm
            forgotten = world.expired or known in world.stored_over
            world.model.told.append(
                Told(run, known, each.complete, *told, newer, alone, first, forgotten, each.committed)
            )
        shown = [(each.partition, each.committed, each.complete, each.counts.read) for each in done.partitions]
        world.log("CHECKPOINT", order.key, shown)
        return True

    def note_told(self, run: Run) -> None:
        """Also where the group stays: a checkpoint has told of it, and whoever puts it there again is seen."""
        world = self.world
        held = {
            world.known_as(place[1]): held.offset for place, held in world.scene.cluster.group(NAME).offsets.items()
        }
        world.model.checkpoint(run, held, held)

    def begins_below(self, order: Order, partition: int) -> bool:
        """Whether its range lay below the group by then: others have done it, and told of it."""
        (planned,) = [each for each in order.plan.ranges if each.partition == partition]
        return planned.committed is not None and planned.end < planned.committed

    def question(self, order: Order, who: str, refused: Exception) -> None:
        world, run = self.world, order.run
        if run is not None and run.kind == "live" and world.is_current(run):
            world.flag(REFUSED.broken(f"{who} was refused, and nobody has moved the group: {refused}"))


def is_of(order: Order, held: Held) -> bool:
    stored = StoredProgress.read_text(held.metadata, "")
    return stored is not None and stored.is_of(order.plan.run_key, order.plan.number)


def is_whole(progress: Any) -> bool:
    return bool(progress) and all(each.complete for each in progress)
