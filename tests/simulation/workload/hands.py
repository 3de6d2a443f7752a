"""Others: who writes to the source, and who operates the cluster."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping

from airflow_provider_kpipe.contract.progress.checkpoint import CommitMark
from tests.simulation.kafka.groups import Held
from tests.simulation.kafka.log import Row
from tests.simulation.processes import Task
from tests.simulation.workload.world import DETAILS, NAME, PROGRESS, WINDOWS, World

FOREIGN = 1_000_000
"""Numbers of producers that are not ours begin here."""
PATIENCE = 300.0


class Feeder:
    """Writes records, some of them in transactions, which come to their end now or later, or are aborted."""

    def __init__(self, world: World) -> None:
        self.world, self.rnd = world, world.script.random("feeder")
        self._producers = FOREIGN

    def begin(self) -> None:
        while self.world.sent < self.world.script.setup.records:
            self.feed()

    def go_on(self) -> None:
        for _ in range(self.rnd.randint(1, 5)):
            self.world.scene.sleep(self.rnd.choice((0.01, 0.05, 1.0, 5.0, 40.0)))
            self.feed()

    def feed(self) -> None:
        world, rnd = self.world, self.rnd
        partition, how = rnd.randrange(world.partitions), rnd.choice(("plain", "plain", "committed", "aborted"))
        numbers = range(world.sent, world.sent + rnd.randint(1, 12))
        world.sent = numbers.stop
        rows = [Row(b"%d" % each, b'{"id": %d}' % each, [("h", b"1")], each + 1) for each in numbers]
        topic = world.scene.cluster.topic(NAME)
        log = topic.logs[partition]
        if how == "plain":
            log.append(rows)
            return
        self._producers += 1
        producer = self._producers
        log.append(rows, producer)
        if rnd.random() < 0.3 and world.scene.play.current is not None:
            world.scene.sleep(rnd.choice((0.01, 0.5, 5.0)))
        log.mark(producer, 0, how == "committed")


class Operator:
    """Moves the group and the topic, where nobody is in the midst of a plan or a checkpoint: nobody could tell on
    which side of it they are."""

    def __init__(self, world: World, rnd: random.Random, runs: Collection[Task]) -> None:
        self.world, self.rnd, self._runs = world, rnd, runs

    # Whether nobody looks

    def is_quiet(self) -> bool:
        scene = self.world.scene
        transaction = scene.cluster.transactions.by_id.get(f"kpipe/{NAME}/checkpoint")
        ended = transaction is None or transaction.state == "empty"
        looks = any(
            scene.play.kinds.get(each.process.name) in ("plan", "checkpoint", "begin") and not each.process.dead
            for each in scene.play.tasks
        )
        return not self.world.busy and ended and not looks and not scene.cluster.group(NAME).pending

    def is_alone(self) -> bool:
        """Whether no run is at work, and no worker that was left behind."""
        tasks = self.world.scene.play.tasks
        others = (each for each in tasks if each is not self.world.scene.play.current and not each.process.dead)
        return self.is_quiet() and all(
            self.world.scene.play.kinds.get(each.process.name) == "feeder" for each in others
        )

    def when(self, quiet: Callable[[], bool]) -> bool:
        return self.world.scene.wait(quiet, PATIENCE)

    # The group

    @property
    def held(self) -> Mapping[int, Held]:
        offsets = self.world.scene.cluster.group(NAME).offsets
        return {place[1]: held for place, held in sorted(offsets.items()) if place[0] == NAME}

    def reset(self) -> None:
        if not self.when(self.is_quiet) or not self.held:
            return
        world, rnd = self.world, self.rnd
        partition = rnd.choice(list(self.held))
        stands = self.held[partition].offset
        known = world.known_as(partition)
        # Also where somebody has put it before.
        to = rnd.choice((0, stands, rnd.randint(0, stands), min(stands, world.model.current(known).base or 0)))
        if not self._is_ours(self.held[partition]) or not world.model.can_move(known, to):
            return
        world.scene.cluster.reset(NAME, NAME, {partition: to}, rnd.choice((None, "", "by hand")))
        world.model.move(known, to)
        world.log("RESET", partition, to)

    def delete(self) -> None:
        """The group is deleted, or its offsets have expired; what checkpoints remember of it has not."""
        world = self.world
        if not self.when(self.is_quiet):
            return
        held = self.held
        if not held or not all(world.model.can_move(world.known_as(each), None) for each in held):
            return
        if not all(map(self._is_ours, held.values())):
            return
        world.scene.cluster.expire(NAME)
        for each in held:
            world.model.move(world.known_as(each), None)
        world.log("DELETE")

    def _is_ours(self, held: Held) -> bool:
        """Whether it is of the topic as it is now."""
        mark = CommitMark.read_text(held.metadata, "")
        return mark is None or mark.topic_id == self.world.scene.cluster.topic(NAME).id

    def expire(self) -> None:
        """A week in which nobody stores: progress is forgotten, or a part of it, as well as all that windows have left.
        The group and its counter are kept by runs with nothing to do."""
        world, cluster = self.world, self.world.scene.cluster
        if not self.when(self.is_alone):
            return
        if any(CommitMark.read_text(each.metadata, "") is None for each in self.held.values()):
            return
        for (group, partition), stored in world.stored().items():
            public = self.held.get(partition)
            told = world.told_of.get((group, partition)) == stored
            if public is None or not (told or stored.offset <= public.offset):
                return
        kept = [each for each in cluster.groups if each.startswith(PROGRESS)]
        kept = [each for each in kept if not each.endswith((".published", ".sequence"))]
        windows = [each for each in cluster.groups if each.startswith(WINDOWS)]
        if any(cluster.group(each).pending for each in (*kept, *windows)):
            return
        share = self.rnd.choice((1.0, 0.7, 0.3))
        # What does not fit beside an offset is stored with it, and goes with it.
        gone = {each for each in sorted({each.removesuffix(DETAILS) for each in kept}) if self.rnd.random() < share}
        for each in (*(each for each in kept if each.removesuffix(DETAILS) in gone), *windows):
            cluster.expire(each)
        world.expired = True
        world.log("EXPIRE", sorted(gone), len(windows))

    # The topic

    def grow(self) -> None:
        if self.world.partitions < 3:
            self.world.scene.cluster.grow(NAME, self.world.partitions + 1)
            self.world.add_partition()
            self.world.log("GROW")

    def retain(self) -> None:
        partition = self.rnd.randrange(self.world.partitions)
        log = self.world.scene.cluster.log(NAME, partition)
        log.delete_before(self.rnd.randint(log.start, log.stable_end))
        self.world.model.left[self.world.known_as(partition)] = log.start
        self.world.expired = True
        self.world.log("RETAIN", partition, log.start)

    def elect(self) -> None:
        """A clean election: nothing is lost."""
        partition = self.rnd.randrange(self.world.partitions)
        self.world.scene.cluster.elect(NAME, partition)
        self.world.log("ELECT", partition)

    def recreate(self) -> None:
        """The topic is re-created, with nobody at work; the group's offsets outlive it, or they do not."""
        world = self.world
        if not self.when(self.is_alone) or world.made_anew or not self.held:
            return
        if any(CommitMark.read_text(each.metadata, "") is None for each in self.held.values()):
            return
        world.keep_source()
        keeps = self.rnd.random() < 0.5
        world.scene.cluster.recreate(NAME, keeps_offsets=keeps)
        before = [world.known_as(each) for each in range(world.partitions)]
        world.model.gone.update(before)
        world.made_anew += 1
        world.told_of = {}
        many, world.partitions = world.partitions, 0
        for _ in range(many):
            world.add_partition()
        world.log("RECREATE", keeps)
