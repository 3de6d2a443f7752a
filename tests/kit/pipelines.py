"""A pipeline over topics of its own, and the means to run it without Airflow."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from itertools import count
from typing import Any

from airflow_provider_kpipe import KafkaDeadLetter, KafkaDestination, KafkaPipeline, KafkaSource, PartitionScaling
from airflow_provider_kpipe.checkpointing.committer import publish
from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.checkpoint import Checkpoint
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from airflow_provider_kpipe.contract.redrive.redrive import Redrive, redriving
from airflow_provider_kpipe.planning.make_plan import make_plan
from airflow_provider_kpipe.planning.ranges import Wishes
from airflow_provider_kpipe.running.attempts import begin_attempt
from airflow_provider_kpipe.sandbox import create_topics
from kpipe_engine.assignment.worker_position import WorkerPosition
from kpipe_engine.partition_worker import PartitionWorker
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.wiring import build_worker

CLOCKS = count()
# A client waits for half a minute for a topic that may just have been created; this one waits shortly.
IMPATIENT: dict[str, Any] = {"topic.metadata.propagation.max.ms": "100"}


def earlier() -> str:
    """Say when a plan was made: an hour before the one that was made before it, since the clocks of hosts disagree."""
    return (datetime(2026, 1, 1, tzinfo=timezone.utc) - timedelta(hours=next(CLOCKS))).isoformat()


@dataclass(frozen=True)
class Bench:
    """One pipeline under test."""

    bootstrap: str
    pipeline: KafkaPipeline
    registry: Mapping[str, str] = field(default_factory=dict)
    """Settings of the schema registry of both ends."""
    login: Mapping[str, str] = field(default_factory=dict)
    """Settings of the connection; records are put in and looked at without them."""
    written_login: Mapping[str, str] | None = None
    """Those of the destination's connection, where it is another one."""

    @classmethod
    def make(
        cls, bootstrap: str, partitions: int = 1, topic_config: dict[str, str] | None = None, **spec: Any
    ) -> Bench:
        """Topics of its own; `spec` goes into the pipeline, `source`, `destination`, `dead_letter` into theirs."""
        name = f"p{uuid.uuid4().hex[:8]}"
        outputs = spec.pop("outputs", partitions)
        alike = [f"{name}.out", f"{name}.dead"]
        if outputs == partitions and not topic_config:
            create_topics(bootstrap, name, *alike, partitions=partitions)
        else:
            create_topics(bootstrap, name, partitions=partitions, config=topic_config)
            create_topics(bootstrap, *alike, partitions=outputs)
        dead_letter = spec.pop("dead_letter", {})
        # `partitions` is how many the topics have.
        scaling = spec.pop("scaling", PartitionScaling())
        pipeline = KafkaPipeline(
            name=name,
            source=KafkaSource(name, **spec.pop("source", {})),
            destination=KafkaDestination(f"{name}.out", **spec.pop("destination", {})),
            dead_letter=None if dead_letter is None else KafkaDeadLetter(f"{name}.dead", **dead_letter),
            partitions=scaling,
            **spec,
        )
        return cls(bootstrap, pipeline)

    def with_scaling(self, scaling: PartitionScaling) -> Bench:
        return Bench(self.bootstrap, replace(self.pipeline, partitions=scaling))

    @property
    def topic(self) -> str:
        return self.pipeline.source.topic

    @property
    def output(self) -> str:
        return self.pipeline.destination.topic

    @property
    def dead(self) -> str:
        return f"{self.topic}.dead"

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings in the type that every client takes."""
        return {"bootstrap.servers": self.bootstrap, **self.login}

    @property
    def written_settings(self) -> dict[str, str]:
        login = self.login if self.written_login is None else self.written_login
        return {"bootstrap.servers": self.bootstrap, **login}

    @property
    def kafka(self) -> KafkaSettings:
        return KafkaSettings(self.settings, self.written_settings, self.registry, self.registry)

    def plan(
        self, run_key: str = "run-1", publish: bool = False, published: dict[int, int] | None = None, **wishes: Any
    ) -> Plan:
        return make_plan(
            self.pipeline,
            Wishes(**wishes),
            self.settings,
            run_key=run_key,
            publish=publish,
            dry_run=False,
            created_at=earlier(),
            published=published,
        )

    def attempt(self, plan: Plan, redrive: Redrive | None = None, **options: Any) -> Job:
        """Begin an attempt of its own, as the run task does."""
        pipeline = redriving(self.pipeline) if redrive else self.pipeline
        begun = begin_attempt(self.settings, plan)
        return Job(pipeline, plan, begun.number, redrive=redrive, checkpointed=begun.checkpointed, **options)

    def worker(
        self,
        plan: Plan,
        *partitions: int,
        job: Job | None = None,
        stop_signal: StopSignal | None = None,
        position: WorkerPosition | None = None,
        **settings: Any,
    ) -> PartitionWorker:
        """For the first partition, if none is named. Workers of one job share an attempt."""
        kafka = KafkaSettings(self.settings, {**self.written_settings, **settings}, self.registry, self.registry)
        planned = [each for each in plan.ranges if each.partition in (partitions or (0,))]
        return build_worker(job or self.attempt(plan), kafka, planned, stop_signal or StopSignal(), position=position)

    def claim(self, plan: Plan) -> Job:
        """Begin an attempt, and do what the driver does before its tasks begin."""
        job = self.attempt(plan)
        for planned in plan.pending:
            if planned.cuts:
                worker = self.piece(job, 0, task=0, partition=planned.partition)
                worker.open()
                worker.close()
        return job

    def piece(self, job: Job, slot: int = 0, task: int = 1, partition: int = 0) -> PartitionWorker:
        """The worker of one piece, as the tasks of a job have it; a range that is not cut has one."""
        (planned,) = [each for each in job.plan.ranges if each.partition == partition]
        return build_worker(job, self.kafka, planned.pieces[slot : slot + 1], StopSignal(), task)

    def work(self, plan: Plan, *partitions: int, job: Job | None = None, **options: Any) -> list[PartitionProgress]:
        """Run these ranges, or every pending one, here and one after another, in one attempt."""
        chosen = partitions or tuple(each.partition for each in plan.pending)
        job = job or self.attempt(plan)
        return [progress for each in chosen for progress in self.worker(plan, each, job=job, **options).run()]

    def checkpoint(self, plan: Plan) -> Checkpoint:
        return publish(self.settings, plan)
