"""Records whose timestamps no clock has shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, change_topic, fill, read_all

ANY = str(2**62)
TAKES_ALL = {"message.timestamp.after.max.ms": ANY, "message.timestamp.before.max.ms": ANY}
IN_3000 = 32_503_680_000_000


def make(broker: SandboxBroker, timestamp: int) -> Bench:
    bench = Bench.make(broker.bootstrap_servers, topic_config=TAKES_ALL)
    sent = [
        Sent(json.dumps({"id": each}).encode(), b"%d" % each, timestamp=at) for each, at in enumerate([timestamp, 0])
    ]
    fill(bench.bootstrap, bench.topic, sent)
    return bench


@pytest.mark.parametrize("timestamp", [IN_3000, 2**53])
def test_the_far_future_is_kept(broker: SandboxBroker, timestamp: int) -> None:
    bench = make(broker, timestamp)
    change_topic(bench.bootstrap, bench.output, TAKES_ALL)
    plan = bench.plan()
    bench.work(plan)
    assert bench.checkpoint(plan).complete
    assert read_all(bench.bootstrap, bench.output)[0].timestamp[1] == timestamp


@pytest.mark.parametrize("timestamp", [-1, -5, -(10**15)])
def test_a_negative_one_is_kept(broker: SandboxBroker, timestamp: int) -> None:
    bench = make(broker, timestamp)
    plan = bench.plan()
    bench.work(plan)
    assert bench.checkpoint(plan).complete
    assert [each.key for each in read_all(bench.bootstrap, bench.output)] == [b"0", b"1"]
    assert read_all(bench.bootstrap, bench.output)[0].timestamp[1] == timestamp


def test_a_topic_with_retention_deletes_old_ones_at_once_and_negative_ones_as_if_they_were_new(tmp_path: Path) -> None:
    """Its broker takes a segment of nothing else to be as old as its file."""
    soon = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"}
    with SandboxBroker(tmp_path, overrides=soon) as broker:
        benches = {timestamp: Bench.make(broker.bootstrap_servers) for timestamp in (1, -5)}
        for timestamp, bench in benches.items():
            fill(bench.bootstrap, bench.topic, [Sent(b'{"id": 1}', timestamp=timestamp)] * 2)
            change_topic(bench.bootstrap, bench.output, {"retention.ms": "600000"})
            plan = bench.plan()
            bench.work(plan)
            assert bench.checkpoint(plan).complete
        wait_for(lambda: log_start(benches[1]) >= 2, "the old ones to be deleted")
        assert (log_start(benches[-5]), len(read_all(broker.bootstrap_servers, benches[-5].output))) == (0, 2)


def log_start(bench: Bench) -> int:
    with Positions(bench.settings) as positions:
        return positions.earliest(positions.topic(bench.output), "read_committed")[0]


def test_a_dead_letter_that_the_future_forbids_stops_in_front_of_its_record(broker: SandboxBroker) -> None:
    """Neither the output nor the dead-letter topic takes it: nothing is passed over."""
    bench = make(broker, IN_3000)
    (stopped,) = bench.work(bench.plan())
    assert (stopped.state, stopped.next_offset) == ("stopped", 0)
    assert "raise message.timestamp.after.max.ms of the dead-letter topic" in (stopped.reason or "")
