"""Redrives of a pipeline's dead letters, without Airflow."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

from airflow_provider_kpipe.contract.dead_letters.dead_letter import DeadLetter
from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.limits import Earliest, Latest, OffsetLimit
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress
from airflow_provider_kpipe.contract.redrive.redrive import (
    Redrive,
    RedriveOrder,
    RedriveTarget,
    Selection,
    ledger_topic_of,
)
from airflow_provider_kpipe.contract.redrive.result import RedriveResult
from airflow_provider_kpipe.kafka.positions import Positions, Topic
from airflow_provider_kpipe.redriving.ledger_topic import ensure_ledger
from airflow_provider_kpipe.redriving.planning import make_redrive_plan
from airflow_provider_kpipe.redriving.preview import preview
from kpipe_engine.partition_worker import PartitionWorker
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.topics import read_all


def order(
    bench: Bench,
    run_key: str = "redrive-1",
    *,
    target: RedriveTarget = "output",
    start: OffsetLimit | None = None,
    end: OffsetLimit | None = None,
    max_attempts: int | None = None,
    parking: str | None = None,
    each_letter: bool = False,
    dry_run: bool = False,
    **selection: Any,
) -> RedriveOrder:
    await_committed(bench)
    plan = make_redrive_plan(
        bench.settings,
        bench.pipeline,
        start or Earliest(),
        end or Latest(),
        run_key=run_key,
        dry_run=dry_run,
        created_at=datetime.now(timezone.utc).isoformat(),
    )
    if not dry_run:
        with Positions(bench.settings) as positions:
            ensure_ledger(bench.settings, positions.topic(bench.dead), ledger_topic_of(bench.pipeline))
    ledger, chosen = ledger_topic_of(bench.pipeline), Selection(**selection)
    return RedriveOrder(plan, Redrive(target, chosen, max_attempts, parking, ledger, bench.topic, each_letter))


def await_committed(bench: Bench) -> None:
    """A broker answers a commit before its readers see it."""
    # The pipeline's own user may not be allowed to look at all of them.
    with Positions({"bootstrap.servers": bench.bootstrap}) as positions:
        for name in (bench.dead, bench.topic, bench.output):
            wait_for(partial(_is_committed, positions, positions.topic(name)), "the end of the last transaction")


def _is_committed(positions: Positions, topic: Topic) -> bool:
    return positions.latest(topic, "read_committed") == positions.latest(topic, "read_uncommitted")


def attempt(bench: Bench, made: RedriveOrder) -> Job:
    return bench.attempt(made.plan, made.redrive)


def worker(
    bench: Bench, made: RedriveOrder, partition: int = 0, job: Job | None = None, **settings: Any
) -> PartitionWorker:
    return bench.worker(made.plan, partition, job=job or attempt(bench, made), **settings)


def work(bench: Bench, made: RedriveOrder) -> list[PartitionProgress]:
    return bench.work(made.plan, job=attempt(bench, made))


def redrive(bench: Bench, run_key: str = "redrive-1", **how: Any) -> Counts:
    """A whole redrive, which has to come to its end."""
    progress = work(bench, order(bench, run_key, **how))
    assert [each.reason for each in progress if not each.complete] == []
    await_committed(bench)
    return sum((each.counts for each in progress), Counts())


def dry_run(bench: Bench, **how: Any) -> RedriveResult:
    return preview(bench.settings, order(bench, "dry-run", dry_run=True, **how))


def fixed(bench: Bench, *segments: str) -> Bench:
    """The same pipeline with other segments: those that made dead letters have been seen to."""
    return replace(bench, pipeline=replace(bench.pipeline, segments=segments))


def letters(bench: Bench, topic: str | None = None) -> list[DeadLetter]:
    found = [
        read_dead_letter(each.key, each.value, each.headers) for each in read_all(bench.bootstrap, topic or bench.dead)
    ]
    return [each for each in found if each]


def ids(bench: Bench, topic: str) -> list[int]:
    return sorted(json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, topic))
