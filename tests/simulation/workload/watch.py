"""Looks at each commit to the public group as it comes."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

from airflow_provider_kpipe.contract.progress.checkpoint import CommitMark
from tests.promises.properties import DOUBLED, GROUP
from tests.simulation.kafka.groups import Held, Place
from tests.simulation.kafka.log import Log, Part
from tests.simulation.workload.world import NAME, OTHERS, PROGRESS, World


class Watch:
    """Tells the model who has moved the group, and looks whether what lies before it can be read by then."""

    def __init__(self, world: World) -> None:
        self._world = world
        world.scene.cluster.on_commit.append(self.committed)

    def committed(self, group: str, place: Place, old: Held | None, new: Held) -> None:
        topic, partition = place
        if group.startswith(PROGRESS) and topic == NAME:
            self._look_at_leases(group, partition, old, new)
        if group != NAME or topic != NAME:
            return
        world, known = self._world, self._world.known_as(partition)
        mark = CommitMark.read_text(new.metadata, "")
        run = world.model.runs.get(mark.run_key) if mark else None
        world.log("GROUP", partition, old and old.offset, new.offset, mark and mark.run_key)
        if run is None:
            if old is None or old.offset != new.offset:
                world.flag(GROUP.broken(f"partition {partition} went from {old} to {new} without any checkpoint"))
            return
        before = {} if old is None or not self._is_here(old) else {known: old.offset}
        if old is not None and old.metadata == new.metadata and old.offset == new.offset:
            return
        world.model.checkpoint(run, before, {known: new.offset})
        if new.offset > before.get(known, -1) and run.kind != "backfill":
            self._look_before(partition, new.offset, run.key)

    def _look_at_leases(self, group: str, partition: int, old: Held | None, new: Held) -> None:
        """Flag a run that stores over a later one, in exactly once.

        In at least once, counts go back with it. So they do with a worker's own commit that was late, and with the
        claim of a later attempt at the same run that stood still between its look and its store.
        """
        if old is None or group.endswith(OTHERS):
            return
        before, after = leased(old.metadata), leased(new.metadata)
        if before is None or after is None or before.topic_id != after.topic_id:
            return
        if not self._world.script.setup.exactly_once:
            goes_back = before.run_key == after.run_key and old.offset > new.offset
            if goes_back or (before.lease, old.offset) > (after.lease, new.offset):
                self._world.stored_over.add(self._world.known_as(partition))
        elif before.lease > after.lease:
            said = (
                f"{after.run_key} has stored {new.offset} of partition {partition} in {group!r} over {before.run_key}"
            )
            self._world.flag(DOUBLED.broken(f"{said}, which came later"))

    def _is_here(self, held: Held) -> bool:
        """Whether it is an offset of the topic as it is now."""
        mark = CommitMark.read_text(held.metadata, "")
        return mark is None or mark.topic_id == self._world.scene.cluster.topic(NAME).id

    def _look_before(self, partition: int, offset: int, key: str) -> None:
        world = self._world
        log = world.scene.cluster.log(NAME, partition)
        waited = [(at, int(row.key or b"")) for at, row in log.read(first=log.start) if at < offset]
        waited = [(at, number) for at, number in waited if world.model.fate(number) != 0]
        if not waited:
            return
        seen = self._visible()
        for at, number in waited:
            if number not in seen:
                said = f"the checkpoint of {key} took the group to {offset}: record {number} at {at} of partition "
                world.flag(GROUP.broken(f"{said}{partition} was nowhere by then"))

    def _visible(self) -> set[int]:
        """Records whose outputs or letters are committed, also where the marker is still on its way."""
        world, cluster = self._world, self._world.scene.cluster
        ending = {
            each.producer for each in cluster.transactions.by_id.values() if each.is_ending and each.state == "commit"
        }
        seen: set[int] = set()
        for log in (*{id(each): each for each, _ in world.scene.written}.values(), *cluster.topic(f"{NAME}.dead").logs):
            seen.update(_numbers(log, ending))
        return seen


class Leased(NamedTuple):
    """As much of stored progress as tells who came later."""

    topic_id: str
    lease: tuple[int, ...]
    run_key: str


@lru_cache(maxsize=1_000)
def leased(metadata: str | None) -> Leased | None:
    """Read it without the product, which reads all of it: most of what is stored is never read by anybody."""
    said = json.loads(metadata) if metadata else {}
    return Leased(said["topic_id"], tuple(said["lease"].values()), said["run_key"]) if "lease" in said else None


def _numbers(log: Log, ending: set[int]) -> set[int]:
    def is_there(part: Part | None) -> bool:
        return part is None or part.is_aborted is False or (part.is_aborted is None and part.producer in ending)

    return {int(each.row.key or b"") for each in log.entries if each.row is not None and is_there(each.part)}
