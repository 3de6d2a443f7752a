"""A run that kpipe 0.1.0 has begun, as its documents are kept, and that the version in the checkout goes on with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.documents import GOLDEN
from tests.kit.pipelines import Bench
from tests.kit.topics import committed, fill, held, hold, numbered, read_all

BEFORE = "0.1.0"
RECORDS, COMMITTED, STORED = 60, 20, 40
BETWEEN = {"era": 1, "base": None}
NOTHING = {"read": 0, "written": 0, "dead_lettered": 0, "filtered": 0, "skipped": 0, "retried": 0, "lost": 0}


def as_written(name: str, **ours: Any) -> dict[str, Any]:
    """A document as that version wrote it, about something that is there; no field comes or goes."""
    document = json.loads((GOLDEN / BEFORE / f"{name}.json").read_text())
    assert ours.keys() <= document.keys()
    return {**document, **ours}


def hold_as_text(bench: Bench, group: str, offset: int, document: Mapping[str, Any]) -> None:
    hold(bench.bootstrap, group, TopicPartition(bench.topic, 0, offset, json.dumps(document, separators=(",", ":"))))


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_run_half_way_goes_on_with_its_plan_its_progress_and_its_mark(
    broker: SandboxBroker, delivery: Delivery
) -> None:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10)
    group, fresh = bench.pipeline.group, numbered(RECORDS)
    # Two thirds of them are written: what was committed before, and what the run half-way has stored.
    fill(bench.bootstrap, bench.topic, fresh)
    fill(bench.bootstrap, bench.output, fresh[:STORED])
    now = bench.plan("made by this version, for the topic's id and a number")
    whose = {"topic_id": now.topic_id, "owner": bench.pipeline.owner, "origin": BETWEEN}
    mark = as_written("CommitMark", **whose, run_key="dag/earlier/plan", number=1, beyond=[])
    for each in (group, f"{group}.kpipe.published"):
        hold_as_text(bench, each, COMMITTED, mark)
    document = as_written(
        "Plan",
        pipeline=bench.pipeline.name,
        owner=bench.pipeline.owner,
        group=group,
        working_group=group,
        topic=bench.topic,
        topic_id=now.topic_id,
        topic_partitions=1,
        number=now.number,
        isolation_level="read_committed",
        ranges=[
            {
                **as_written("Plan")["ranges"][0],
                "partition": 0,
                "start": COMMITTED,
                "end": RECORDS,
                "committed": COMMITTED,
                "cuts": [],
                "done": [],
                "origin": BETWEEN,
                "group_origin": BETWEEN,
                "leader_epoch": 0,
            }
        ],
    )
    handled = STORED - COMMITTED
    golden = as_written("StoredProgress")
    hold_as_text(
        bench,
        f"{group}.kpipe",
        STORED,
        {
            **golden,
            **whose,
            "number": now.number,
            "start": COMMITTED,
            "end": RECORDS,
            "reason": None,
            "ended": None,
            "done": [],
            "counts": {**golden["counts"], **NOTHING, "read": handled, "written": handled, "causes": []},
            "stops_run": False,
            "took_over": None,
            "pieces": 1,
            "unsettled": None,
            "is_detailed": False,
            "lease": {"plan": now.number, "attempt": now.number, "task": 0},
            "inherited": {**NOTHING, "named": {}},
        },
    )

    plan = Plan.from_json(document)
    (progress,) = bench.work(plan)
    checkpoint = bench.checkpoint(plan)

    assert (progress.complete, progress.counts.read, progress.counts.written) == (True, 40, 40)
    assert progress.counts.named == golden["counts"]["named"]
    assert (checkpoint.complete, checkpoint.totals.read) == (True, 40)
    assert [each.key for each in read_all(bench.bootstrap, bench.output)] == [each.key for each in fresh]
    assert committed(bench.bootstrap, group, bench.topic, 1) == {0: RECORDS}
    assert bench.plan("next").pending == ()


def test_the_older_version_can_read_a_run_of_this_one(broker: SandboxBroker) -> None:
    """A deploy that is taken back: every document has the fields of before, in their places."""
    bench = Bench.make(broker.bootstrap_servers, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(20))
    plan = bench.plan()
    job = bench.attempt(plan)
    bench.work(plan, job=job)
    bench.checkpoint(plan)
    group = bench.pipeline.group
    written = {
        "Plan": plan.to_json(),
        "Job": job.to_json(),
        "StoredProgress": json.loads(held(bench.bootstrap, f"{group}.kpipe", bench.topic).metadata or ""),
        "CommitMark": json.loads(held(bench.bootstrap, group, bench.topic).metadata or ""),
    }
    for name, document in written.items():
        before = as_written(name)
        assert before.keys() <= document.keys(), name
        assert document["schema_version"] == before["schema_version"], name
    assert Job.from_json(written["Job"]) == job
