"""What the gate looks at."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.checkpointing.draining import look
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, commit, fill


@pytest.fixture
def bench(broker: SandboxBroker) -> Bench:
    made = Bench.make(broker.bootstrap_servers, partitions=3)
    # Partition 2 stays empty.
    fill(made.bootstrap, made.topic, [Sent(timestamp=1_000 + each, partition=each % 2) for each in range(20)])
    return made


def drained(bench: Bench, **target: object) -> dict[int, bool]:
    spec: dict[str, Any] = {
        "group": bench.pipeline.group,
        "topic": bench.topic,
        "isolation_level": "read_committed",
        "timestamp_ms": None,
        "offsets": None,
        "partitions": None,
    }
    return {each.partition: each.drained for each in look(bench.settings, DrainTarget(**{**spec, **target}))}


def test_up_to_the_end_as_it_is_now(bench: Bench) -> None:
    assert drained(bench) == {0: False, 1: False, 2: True}
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 10, 1: 9})
    assert drained(bench) == {0: True, 1: False, 2: True}
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {1: 10})
    assert drained(bench) == {0: True, 1: True, 2: True}
    fill(bench.bootstrap, bench.topic, [Sent(partition=2)])
    assert drained(bench) == {0: True, 1: True, 2: False}


def test_a_group_that_was_deleted_has_reached_nothing(bench: Bench) -> None:
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 10, 1: 10})
    assert drained(bench) == {0: True, 1: True, 2: True}
    admin = AdminClient(bench.settings)
    admin.delete_consumer_groups([bench.pipeline.group])[bench.pipeline.group].result(30)
    assert drained(bench) == {0: False, 1: False, 2: True}


def test_up_to_a_moment(bench: Bench) -> None:
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 5, 1: 4})
    assert drained(bench, timestamp_ms=1_010) == {0: True, 1: False, 2: True}


def test_up_to_a_moment_that_has_not_come_nothing_is_drained_yet(bench: Bench) -> None:
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 10, 1: 10})
    ahead = int(time.time() + 3_600) * 1_000
    assert drained(bench, timestamp_ms=ahead) == {0: False, 1: False, 2: False}
    assert drained(bench, timestamp_ms=ahead - 7_200_000) == {0: True, 1: True, 2: True}


def test_up_to_offsets_and_for_some_partitions(bench: Bench) -> None:
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 5, 1: 4})
    assert drained(bench, offsets={0: 5, 1: 5}) == {0: True, 1: False}
    assert drained(bench, offsets={0: 5, 1: 5}, partitions=(0,)) == {0: True}
    assert drained(bench, partitions=(2,)) == {2: True}
    with pytest.raises(PlanError, match=r"partition 2 of .* has no target: `until` names \[0, 1\]"):
        drained(bench, offsets={0: 5, 1: 5}, partitions=(2,))


@pytest.mark.parametrize("asked", [{"partitions": (0, 7)}, {"offsets": {0: 5, 7: 5}}], ids=["partitions", "until"])
def test_a_partition_that_is_not_there_is_named(bench: Bench, asked: dict[str, object]) -> None:
    with pytest.raises(PlanError, match=f"partition 7 is not in topic '{bench.topic}', which has partitions 0 to 2"):
        drained(bench, **asked)
