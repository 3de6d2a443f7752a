"""Records that leave the source topic while a run is at work."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.checkpointing.draining import look
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.gated import SEGMENT, gated, in_the_middle
from tests.kit.pipelines import Bench
from tests.kit.topics import committed, fill, numbered, read_all

RECORDS, GATE, GONE = 200, 15, 120


def ids(bench: Bench) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output)]


def delete_up_to(bench: Bench, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": bench.bootstrap})
    (answer,) = admin.delete_records([TopicPartition(bench.topic, 0, offset)]).values()
    answer.result(30)


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_those_in_front_of_a_worker_are_named_and_can_be_passed_over(
    broker: SandboxBroker, delivery: Delivery, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    made = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10, segments=[SEGMENT])
    # Nearly nothing is fetched ahead, so that what is gone is missed.
    few = {"queued.min.messages": "1", "queued.max.messages.kbytes": "1", "fetch.message.max.bytes": "200"}
    bench = dataclasses.replace(made, login=few)
    fill(bench.bootstrap, bench.topic, gated(numbered(RECORDS), GATE, gate), **{"batch.num.messages": 5})
    plan = bench.plan()
    with in_the_middle(bench, plan, 10, gate) as working:
        delete_up_to(bench, GONE)

    (stopped,) = working.progress
    missed = stopped.next_offset
    assert (stopped.state, GATE < missed < GONE) == ("stopped", True)
    assert f"records {missed} to {GONE - 1} have left the topic before they were read" in (stopped.reason or "")
    assert ids(bench) == list(range(missed))
    checkpoint = bench.checkpoint(plan)
    assert not checkpoint.complete
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {0: missed}
    target = DrainTarget.of_plan(plan, group=None, partitions=None)
    assert [each.drained for each in look(bench.settings, target, plan)] == [False]
    # The next run does not begin behind the loss by itself.
    following = bench.plan("run-2")
    assert [each.start for each in following.ranges] == [missed]
    (again,) = bench.work(following)
    assert (again.state, again.next_offset) == ("stopped", missed)

    source = dataclasses.replace(bench.pipeline.source, on_data_loss="skip")
    skipping = dataclasses.replace(bench, pipeline=dataclasses.replace(bench.pipeline, source=source))
    last = skipping.plan("run-3")
    skipping.work(last)
    told = skipping.checkpoint(last)

    assert told.complete
    assert (told.totals.lost, told.totals.read) == (GONE - missed, RECORDS - GONE)
    assert ids(bench) == [*range(missed), *range(GONE, RECORDS)]
