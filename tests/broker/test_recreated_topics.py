"""The source topic is deleted and re-created in the middle of a run, and has grown past it or not."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.checkpointing.draining import look
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.exceptions import StalePlanError
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from kpipe_engine.assignment import last_words
from kpipe_engine.reading import planned_topic
from tests.kit.gated import SEGMENT, gated, in_the_middle
from tests.kit.pipelines import Bench
from tests.kit.topics import committed, fill, numbered, read_all

RECORDS, NEW = 60, 1_000
FEW = {"queued.min.messages": "1", "queued.max.messages.kbytes": "1", "fetch.message.max.bytes": "200"}
each_length = pytest.mark.parametrize("many", [0, 5, 300], ids=["empty", "shorter", "longer"])


def ids(bench: Bench) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output)]


def recreate(bench: Bench, many: int) -> None:
    admin = AdminClient({"bootstrap.servers": bench.bootstrap})
    admin.delete_topics([bench.topic])[bench.topic].result(30)
    create_topics(bench.bootstrap, bench.topic)
    fill(bench.bootstrap, bench.topic, numbered(many, start=NEW))


@each_length
@pytest.mark.parametrize("ahead", [True, False], ids=["all is fetched ahead", "nearly nothing is"])
def test_nothing_of_the_new_topic_is_stored_by_the_old_run(
    broker: SandboxBroker, many: int, ahead: bool, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    bench = Bench.make(broker.bootstrap_servers, chunk_records=10, segments=[SEGMENT])
    if not ahead:
        bench = dataclasses.replace(bench, login=FEW)
    fill(bench.bootstrap, bench.topic, gated(numbered(RECORDS), 15, gate), **{"batch.num.messages": 5})
    plan = bench.plan()
    with in_the_middle(bench, plan, 10, gate) as working:
        recreate(bench, many)

    (progress,) = working.progress
    assert (progress.state, progress.next_offset) == ("stopped", 10)
    assert "was re-created while it was read" in (progress.reason or "")
    assert ids(bench) == list(range(10))
    target = DrainTarget.of_plan(plan, group=None, partitions=None)
    for step in (lambda: bench.checkpoint(plan), lambda: look(bench.settings, target, plan)):
        with pytest.raises(StalePlanError, match="was re-created since it was planned"):
            step()
    assert committed(bench.bootstrap, plan.group, bench.topic, 1) == {}

    # No checkpoint has ever come to the group: it begins as in a new one.
    following = bench.plan("run-2")
    assert [(each.start, each.end) for each in following.ranges] == [(0, many)]
    bench.work(following)
    assert bench.checkpoint(following).complete
    assert ids(bench) == [*range(10), *range(NEW, NEW + many)]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_topic_that_is_deleted_and_stays_so_stops_the_run_by_name(
    broker: SandboxBroker, delivery: Delivery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_words, "SAY_SECONDS", 2.0)
    monkeypatch.setattr(planned_topic, "GONE_SECONDS", 1.0)
    gate = tmp_path / "gate"
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10, segments=[SEGMENT])
    fill(bench.bootstrap, bench.topic, gated(numbered(RECORDS), 15, gate))
    plan = bench.plan()
    with in_the_middle(bench, plan, 10, gate) as working:
        admin = AdminClient({"bootstrap.servers": bench.bootstrap})
        admin.delete_topics([bench.topic])[bench.topic].result(30)

    (progress,) = working.progress
    assert (progress.state, progress.next_offset) == ("stopped", 10)
    assert f"topic {bench.topic!r} was deleted while it was read" in (progress.reason or "")
