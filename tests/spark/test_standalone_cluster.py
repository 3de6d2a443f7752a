"""A run on a cluster, whose executors have nothing but what is sent along, and share a secret with the driver."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import run_job
from tests.kit.pipelines import Bench
from tests.kit.spark_services import SparkServices, spark_services
from tests.kit.topics import committed, fill, numbered, read_all

PARTITIONS = 3
EACH = 100
POISON = 101


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkServices]:
    java = {"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with spark_services({**java, "PATH": path}, tmp_path) as running:
        yield running


@pytest.fixture
def executors_python(tmp_path: Path) -> Path:
    """A Python that is there for the workers on executors, and for nobody else."""
    python = tmp_path / "python"
    real = shlex.quote(sys.executable)
    python.write_text(f'#!/bin/sh\n[ "$1 $2" = "-m pyspark.daemon" ] && exec {real} "$@"\nexit 127\n')
    python.chmod(0o700)
    return python


def test_executors_do_the_work_with_modules_that_came_along(
    broker: SandboxBroker, cluster: SparkServices, executors_python: Path
) -> None:
    bench = Bench.make(
        broker.bootstrap_servers,
        PARTITIONS,
        segments=["orders_kit:parse", "whereabouts_kit:says_where"],
        delivery="exactly_once",
    )
    records = numbered(PARTITIONS * EACH, PARTITIONS)
    records[POISON] = type(records[POISON])(b"{broken", b"poison", partition=POISON % PARTITIONS)
    fill(bench.bootstrap, bench.topic, records)
    plan = bench.plan()

    own: dict[str, Any] = {**cluster.variables, "PYSPARK_PYTHON": str(executors_python)}
    code, output = run_job(bench, plan, master=cluster.master, **own)

    assert code == 0, output
    written = read_all(bench.bootstrap, bench.output)
    assert sorted(each.key or b"" for each in written) == sorted(
        each.key or b"" for each in records if each.key != b"poison"
    )
    assert all(json.loads(each.value or b"")["seen"] for each in written)
    # The folder that the worker gave an executor: of its application, and its own. The module was put there too.
    for each in written:
        ran_in = Path(each.header("ran-in"))
        assert ran_in.parent.parent == cluster.work
        assert Path(each.header("came-from")).is_relative_to(ran_in)
    (dead,) = read_all(bench.bootstrap, bench.dead)
    assert (dead.key, dead.value) == (b"poison", b"{broken")
    with Positions(bench.settings) as positions:
        assert [(each.state, each.next_offset) for each in positions.progress(plan)] == [("complete", EACH)] * 3
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, PARTITIONS) == {}
    assert bench.checkpoint(plan).totals.dead_lettered == 1
    ends = dict.fromkeys(range(PARTITIONS), EACH)
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, PARTITIONS) == ends
