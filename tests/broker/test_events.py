"""What is told of a partition, in the log and on a topic."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from kpipe_engine.stop_signal import StopSignal
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, fill, numbered, read_all


@pytest.fixture
def events_topic(broker: SandboxBroker, request: pytest.FixtureRequest) -> str:
    name = f"events-{abs(hash(request.node.nodeid))}"
    create_topics(broker.bootstrap_servers, name, partitions=3)
    return name


def told(bench: Bench, topic: str) -> list[dict[str, Any]]:
    return [json.loads(record.value or b"") for record in read_all(bench.bootstrap, topic)]


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [json.loads(record.getMessage()) for record in caplog.records if record.name == "kpipe.events"]


def test_a_partition_tells_of_its_way_in_the_log_and_on_a_topic(
    broker: SandboxBroker, events_topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kpipe.events")
    bench = Bench.make(
        broker.bootstrap_servers,
        partitions=2,
        segments=["orders_kit:parse"],
        chunk_records=20,
        scaling=PartitionScaling(events_topic=events_topic),
    )
    records = numbered(60, partitions=2)
    records[7] = Sent(b"{broken", b"7", partition=1)
    fill(bench.bootstrap, bench.topic, records)

    bench.work(bench.plan())

    found = told(bench, events_topic)
    assert sorted(map(json.dumps, found)) == sorted(map(json.dumps, logged(caplog)))
    for partition in (0, 1):
        own = [each for each in found if each["partition"] == partition]
        assert [each["event"] for each in own] == [
            "assigned", "started", "chunk_stored", "chunk_stored", "completed",
        ]  # fmt: skip
        assert [each["next_offset"] for each in own] == [0, 0, 20, 30, 30]
        assert own[-1]["counts"]["dead_lettered"] == partition
        assert {(each["pipeline"], each["run_key"], each["topic"]) for each in own} == {
            (bench.pipeline.name, "run-1", bench.topic)
        }
        assert {(each["lease_id"], each["start"], each["end"], each["piece"], each["pieces"]) for each in own} == {
            (f"kafka:{bench.topic}:{partition}", 0, 30, 0, 1)
        }
        assert [each["highest_completed_offset"] for each in own] == [-1, -1, 19, 29, 29]
    keys = {(record.partition, record.key) for record in read_all(bench.bootstrap, events_topic)}
    # One key, one partition: a reader sees the events of a partition in their order.
    assert len(keys) == 2
    assert {key for _, key in keys} == {f"{bench.topic}:0".encode(), f"{bench.topic}:1".encode()}


def test_switched_off_nothing_is_told(broker: SandboxBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kpipe.events")
    bench = Bench.make(broker.bootstrap_servers, scaling=PartitionScaling(emit_partition_execution_events=False))
    fill(bench.bootstrap, bench.topic, numbered(10))

    (progress,) = bench.work(bench.plan())

    assert progress.complete
    assert logged(caplog) == []


def test_how_a_partition_ends_before_its_end_is_told(broker: SandboxBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kpipe.events")
    bench = Bench.make(broker.bootstrap_servers, segments=["orders_kit:parse"], dead_letter=None)
    fill(bench.bootstrap, bench.topic, [*numbered(5), Sent(b"{broken", b"5")])
    plan = bench.plan()
    bench.work(plan)
    stop_signal = StopSignal()
    stop_signal.request("somebody stopped the task")
    bench.work(plan, stop_signal=stop_signal)

    found = [(each["event"], each["next_offset"]) for each in logged(caplog)]
    assert found == [
        ("assigned", 0),
        ("started", 0),
        ("chunk_stored", 5),
        ("faulted", 5),
        ("assigned", 5),
        ("draining", 5),
        ("chunk_stored", 5),
        ("drained", 5),
        ("yielded", 5),
    ]
    assert "JSONDecodeError" in logged(caplog)[3]["reason"]
    assert logged(caplog)[-1]["reason"] == "somebody stopped the task"


def test_a_chunk_that_is_given_up_is_not_drained(broker: SandboxBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kpipe.events")
    scaling = PartitionScaling(rebalance_mode="stop_accepting_new_work_and_yield")
    bench = Bench.make(broker.bootstrap_servers, scaling=scaling)
    fill(bench.bootstrap, bench.topic, numbered(5))
    stop_signal = StopSignal()
    stop_signal.request("somebody stopped the task")
    bench.work(bench.plan(), stop_signal=stop_signal)
    assert [each["event"] for each in logged(caplog)] == ["assigned", "chunk_stored", "yielded"]


def test_a_worker_that_loses_a_partition_emits_it(broker: SandboxBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kpipe.events")
    bench = Bench.make(broker.bootstrap_servers, chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(30))
    plan = bench.plan()
    older = bench.worker(plan)
    older.open()
    bench.work(plan)
    caplog.clear()

    older.run_chunks()
    older.close()

    events = [(each["event"], each.get("reason")) for each in logged(caplog)]
    assert events == [("started", None), ("revoked", "run run-1 took the partition over")]
