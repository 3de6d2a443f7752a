"""What somebody may do who is allowed to write to the groups in which kpipe stores how far its runs are."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.exceptions import StalePlanError
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.topics import committed, fill, held, hold, numbered, read_all

RECORDS, STORED = 60, 20


def ids(bench: Bench) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output)]


@pytest.fixture
def half_way(broker: SandboxBroker) -> tuple[Bench, Plan]:
    bench = Bench.make(broker.bootstrap_servers, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    plan = bench.plan()
    worker = bench.worker(plan)
    worker.open()
    worker.run_chunk()
    worker.run_chunk()
    worker.close()
    return bench, plan


def test_a_group_that_is_deleted_in_mid_run_begins_its_range_again(half_way: tuple[Bench, Plan]) -> None:
    bench, plan = half_way
    admin = AdminClient(bench.settings)
    admin.delete_consumer_groups([plan.progress_group()])[plan.progress_group()].result(30)
    bench.work(plan)
    assert bench.checkpoint(plan).complete
    assert ids(bench) == [*range(STORED), *range(RECORDS)]
    assert committed(bench.bootstrap, plan.group, bench.topic, 1) == {0: RECORDS}


@pytest.mark.parametrize("text", ["", "by hand"])
@pytest.mark.parametrize("offset", [0, 35, 200])
def test_an_offset_without_a_document_is_none_and_the_range_begins_again(
    half_way: tuple[Bench, Plan], offset: int, text: str
) -> None:
    """It passes over nothing. What was written is written again."""
    bench, plan = half_way
    hold(bench.bootstrap, plan.progress_group(), TopicPartition(bench.topic, 0, offset, text))
    bench.work(plan)
    assert bench.checkpoint(plan).complete
    assert ids(bench) == [*range(STORED), *range(RECORDS)]
    assert committed(bench.bootstrap, plan.group, bench.topic, 1) == {0: RECORDS}


def test_progress_beyond_the_log_is_refused_by_the_checkpoint(half_way: tuple[Bench, Plan]) -> None:
    bench, plan = half_way
    text = held(bench.bootstrap, plan.progress_group(), bench.topic).metadata
    hold(bench.bootstrap, plan.progress_group(), TopicPartition(bench.topic, 0, RECORDS + 1, text))
    with pytest.raises(StalePlanError, match=rf"was handled up to {RECORDS + 1}, and the log ends at {RECORDS}"):
        bench.checkpoint(plan)
    assert committed(bench.bootstrap, plan.group, bench.topic, 1) == {}


def test_a_document_that_is_damaged_stops_its_partition_and_is_left_as_it_is(half_way: tuple[Bench, Plan]) -> None:
    bench, plan = half_way
    written = held(bench.bootstrap, plan.progress_group(), bench.topic)
    damaged = str(written.metadata).replace('"start":0', '"start":"nowhere"')
    assert damaged != written.metadata
    hold(bench.bootstrap, plan.progress_group(), TopicPartition(bench.topic, 0, STORED, damaged))
    (stopped,) = bench.work(plan)
    assert stopped.state == "stopped"
    assert "is unreadable and was left unchanged: " in (stopped.reason or "")
    assert held(bench.bootstrap, plan.progress_group(), bench.topic).metadata == damaged
    assert ids(bench) == list(range(STORED))
