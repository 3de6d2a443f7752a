"""One pipeline, its topics, and what is known of it while a schedule runs."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import KafkaException
from interleaving_kit import outputs_of

from airflow_provider_kpipe import KafkaDeadLetter, KafkaDestination, KafkaPipeline, KafkaSource, PartitionScaling
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline as Pipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive.redrive import Redrive
from airflow_provider_kpipe.exceptions import KpipeError, StalePlanError
from kpipe_engine.errors import PartitionHaltedError
from kpipe_engine.stop_signal import StopSignal
from tests.kit.pipelines import Bench
from tests.promises.model import Model, Place, Run
from tests.promises.properties import REFUSED, Anomaly
from tests.simulation.kafka.groups import Held
from tests.simulation.processes import Task
from tests.simulation.workload.scene import Scene
from tests.simulation.workload.script import HANDLERS, Script

EXPECTED = (KpipeError, KafkaException, PartitionHaltedError)
NAME = "p"
PROGRESS = f"{NAME}.kpipe"
WINDOWS = f"{NAME}.backfill."
DETAILS = ".details"
OTHERS = (".published", ".sequence", DETAILS, ".stop")
"""Endings of groups that hold no progress."""
LAST_CHUNK = 50


@dataclass(slots=True)
class Order:
    """A plan with the pipeline that works on it."""

    plan: Plan
    pipeline: Pipeline
    run: Run | None = None
    """None of a redrive."""
    redrive: Redrive | None = None
    known: Mapping[tuple[str, int], Held] = field(default_factory=dict)
    """What was stored before it was planned."""

    @property
    def key(self) -> str:
        return self.plan.run_key


@dataclass
class World:
    """Everybody shares it; who is where is known to the scene alone."""

    script: Script
    scene: Scene
    bench: Bench = field(init=False)
    model: Model = field(init=False)
    orders: list[Order] = field(default_factory=list)
    asked: list[StopSignal] = field(default_factory=list)
    """Of workers, those that are over too."""
    partitions: int = 0
    made_anew: int = 0
    """How often the source topic was."""
    sent: int = 0
    is_final: bool = False
    expired: bool = False
    """Whether progress has expired, or records have left the topic: some counts are known to nobody any more."""
    stored_over: set[int] = field(default_factory=set)
    """Partitions in which somebody has stored over what somebody else has later: what that one had counted is gone."""
    source: dict[int, Place] = field(default_factory=dict)
    """Of records that were read of the source in the end, or before it was re-created."""
    told_of: dict[tuple[str, int], Held] = field(default_factory=dict)
    """What a checkpoint has told of, by group and partition: what its run has stored, or its plan has known."""
    busy: int = 0
    """Plans, attempts and checkpoints that look at the group now."""

    def __post_init__(self) -> None:
        setup = self.script.setup
        segments, in_flight = HANDLERS[setup.handler]
        scaling = PartitionScaling(
            "relax_ordering_within_partition" if setup.relaxed else "preserve_partition_order",
            max_in_flight_per_partition=in_flight,
            rebalance_mode="drain_and_yield" if setup.drains else "stop_accepting_new_work_and_yield",
            emit_partition_execution_events=setup.tells,
        )
        pipeline = KafkaPipeline(
            name=NAME,
            source=KafkaSource(NAME, on_data_loss="skip"),
            destination=KafkaDestination(f"{NAME}.out"),
            dead_letter=KafkaDeadLetter(f"{NAME}.dead"),
            chunk_records=setup.chunk_records,
            partitions=scaling,
            segments=segments,
            delivery="exactly_once" if setup.exactly_once else "at_least_once",
            max_dead_letter_ratio=None,
        )
        self.bench = Bench("model:9092", pipeline)
        self.model = Model(setup.exactly_once, not setup.relaxed, outputs_of if segments else lambda _: 1)
        self.scene.cluster.broker_settings["offset.metadata.max.bytes"] = str(setup.metadata_bytes)
        self.scene.create(NAME, setup.partitions)
        self.scene.create(f"{NAME}.out", 1)
        self.scene.create(f"{NAME}.dead", setup.letters)
        for _ in range(setup.partitions):
            self.add_partition()

    def add_partition(self) -> None:
        self.model.add_partition(self.known_as(self.partitions))
        self.partitions += 1

    def known_as(self, partition: int) -> int:
        """A topic that was re-created has other partitions, to the model."""
        return 1_000 * self.made_anew + partition

    def keep_source(self) -> None:
        """Note where each record of the source lies."""
        for partition in range(self.partitions):
            for at, row in self.scene.cluster.read(NAME, partition, whole=True):
                self.source[int(row.key or b"")] = self.known_as(partition), at

    def log(self, *what: object) -> None:
        self.scene.log(*what)

    def flag(self, anomaly: Anomaly) -> None:
        self.log("ANOMALY", anomaly.promise.name, str(anomaly))
        self.model.flag(anomaly)

    # Tasks of Airflow

    def in_airflow(self, name: str, kind: str, body: Callable[[], Any], tries: int = 3) -> Any:
        """Run a task in a process of its own, which is tried again where it fails; None where nothing came of it."""
        for number in range(tries):
            task = self.scene.spawn(f"{name}.{number}", kind, body)
            self.scene.wait(task.has_ended)
            if task.error is None and not task.process.dead:
                return task.result
            self.heed(task)
            if isinstance(task.error, StalePlanError):
                return None
        return None

    def heed(self, task: Task) -> None:
        """Note how a task has failed: in a way that nobody has foreseen is an anomaly."""
        if task.error is None:
            return
        self.log(task.name, "failed", repr(task.error)[:300])
        if not isinstance(task.error, EXPECTED):
            shown = "".join(traceback.format_exception(task.error))[-1_500:]
            self.flag(REFUSED.broken(f"{task.name} ended in an error that nobody has foreseen: {shown}"))

    def shared(self, name: str, kind: str, body: Callable[[], Any]) -> Any:
        """While it goes on, nobody moves the group from outside: it could not tell on which side of that it is."""
        self.busy += 1
        try:
            return self.in_airflow(name, kind, body)
        finally:
            self.busy -= 1

    def writing_to(self, key: str) -> Pipeline:
        """The pipeline, with an output topic of the run's own: what lies there tells who has handled it."""
        self.scene.create_output(output_of(key))
        pipeline = self.bench.pipeline
        # Where nobody disturbs any more, it is one and the same after how many records a worker stores.
        chunk = max(pipeline.chunk_records, LAST_CHUNK) if self.is_final else pipeline.chunk_records
        destination = replace(pipeline.destination, topic=output_of(key))
        return replace(pipeline, destination=destination, chunk_records=chunk)

    def is_current(self, run: Run) -> bool:
        """Whether nobody has moved the group since the run was planned, or made the topic anew."""
        moved = any(self.model.current(each) != lineage for each, lineage in run.lineages.items())
        return not moved and self.model.gone.isdisjoint(run.ranges)

    def stored(self) -> dict[tuple[str, int], Held]:
        """What runs that follow the group have stored, by group and partition: two may have come to one offset."""
        groups = self.scene.cluster.groups
        named = [each for each in groups if each.startswith(PROGRESS) and not each.endswith(OTHERS)]
        return {(each, place[1]): held for each in named for place, held in groups[each].offsets.items()}

    def has_newer(self, order: Order, partition: int) -> bool:
        later = self.orders[self.orders.index(order) + 1 :]
        return any(each.run is not None and partition in each.run.ranges for each in later)


def output_of(key: str) -> str:
    return f"out.{key}"
