"""The end of a schedule: nobody disturbs any more, and everything is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter
from tests.promises.model import Found
from tests.promises.properties import DRAINED, LETTERS
from tests.simulation.processes import Task
from tests.simulation.workload.redrives import RedriveRun
from tests.simulation.workload.runs import DagRun
from tests.simulation.workload.script import HANDLERS
from tests.simulation.workload.world import NAME, World, output_of

if TYPE_CHECKING:
    from tests.simulation.kafka.log import Row

MOST_LAST_RUNS = 12


def drain(world: World, feeding: Task) -> None:
    scene, rnd = world.scene, world.script.random("drain")
    if rnd.random() < 0.5:
        scene.wait(lambda: is_left_alone(world), 1e4)
    scene.play.mine.over = True
    world.is_final = True
    for number in range(MOST_LAST_RUNS):
        if number == 1:
            scene.wait(lambda: feeding.done)
        fed = feeding.done
        order = DagRun(world, f"last{number}", rnd).go()
        if order is not None:
            look_for_open(world)
        if order is not None and fed and scene.is_still and (is_drained(world) or not order.plan.pending):
            world.model.drained = True
            break
        scene.sleep(20.0)
    else:
        world.flag(DRAINED.broken(f"{MOST_LAST_RUNS} runs that nobody disturbed have not come to the end"))
    if HANDLERS[world.script.setup.handler][0] and rnd.random() < 0.3:
        redrive_all(world)


def look_for_open(world: World) -> None:
    """Where checkpoints end what is open, nothing that readers wait for is after one that nobody disturbed."""
    setup = world.script.setup
    if not (setup.exactly_once and setup.ends_open and is_left_alone(world)) or world.expired or world.made_anew:
        return
    for each in world.scene.cluster.transactions.by_id.values():
        if each.holds_readers and each.name.startswith(f"kpipe/{NAME}/{NAME}/"):
            world.flag(DRAINED.broken(f"a transaction of {each.name} is open behind a checkpoint: readers wait for it"))


def is_drained(world: World) -> bool:
    """Whether the group is at the end of each partition."""
    offsets, logs = world.scene.cluster.group(NAME).offsets, world.scene.cluster.topic(NAME).logs
    return all((held := offsets.get((NAME, log.partition))) and held.offset == log.stable_end for log in logs)


def is_left_alone(world: World) -> bool:
    tasks = world.scene.play.tasks
    return all(each is world.scene.play.current or each.process.dead for each in tasks)


def redrive_all(world: World) -> None:
    """All that is left of the letters; what is asked for twice comes back once."""
    world.scene.wait(lambda: is_left_alone(world), 1e4)
    if not is_left_alone(world):
        return
    for number in range(2):
        run = RedriveRun(world, f"redrive{number}", world.script.random("redrive", number))
        order = run.order()
        if order is None:
            world.flag(DRAINED.broken("a redrive that nobody disturbed was not ordered"))
            return
        if order.plan.pending and not run.attempt(order):
            world.flag(DRAINED.broken("a redrive that nobody disturbed has not come to its end"))
            return
        run.tell(order)
    world.model.redriven_all = True


def found(world: World) -> Found:
    """What lies in the topics for readers of what is committed."""
    cluster, scene = world.scene.cluster, world.scene
    world.keep_source()
    written: dict[str, list[int]] = {}
    redriven: dict[str, list[int]] = {}
    keys = {}
    for order in world.orders:
        log = cluster.log(output_of(order.key), 0)
        keys[id(log)] = order
        (redriven if order.redrive else written)[order.key] = [number_in(row) for _, row in log.read()]
    in_order = [
        (keys[id(log)].key, number_in(log.entries[at].row))
        for log, at in scene.written
        if log.entries[at].is_seen(committed=True) and not keys[id(log)].redrive
    ]
    letters: dict[str, list[int]] = {}
    for log in cluster.topic(f"{NAME}.dead").logs:
        for _, row in log.read():
            letters.setdefault(key_of_letter(world, row), []).append(number_in(row))
    return Found(world.source, written, letters, redriven, in_order)


def key_of_letter(world: World, row: Row) -> str:
    """The run that has made a letter, which has to say where its record lies."""
    headers: list[Any] = list(row.headers or [])
    letter = read_dead_letter(row.key, row.value, headers)
    if letter is None:
        world.flag(LETTERS.broken(f"the letter of record {number_in(row)} cannot be read"))
        return ""
    place, number = letter.source, number_in(row)
    said = place and (place.topic, place.partition, place.offset)
    known, offset = world.source.get(number, (-1, -1))
    if said != (NAME, known % 1_000, offset):
        world.flag(
            LETTERS.broken(f"the letter of record {number} says that it is from {said}, and not {known, offset}")
        )
    return letter.run_key or ""


def number_in(row: Row | None) -> int:
    assert row is not None
    return int(row.key or b"")
