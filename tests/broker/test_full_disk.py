"""Disks that are full: the broker's, and the one on which a job is put together."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.gated import SEGMENT, gated, in_the_middle
from tests.kit.job_runs import job_run
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.shorter_bounds import shorten_bounds
from tests.kit.small_disk import fill_up, make_room, small_disk
from tests.kit.topics import committed, fill, numbered, read_all

RECORDS = 40
# A log of a megabyte or two in all.
SMALL = {"log.index.size.max.bytes": "65536", "log.segment.bytes": "1048576"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "64m") as mounted:
        yield mounted


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_broker_whose_disk_is_full_ends_the_run_by_name_and_nothing_is_lost(
    disk: Path, tmp_path: Path, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka stops a broker that can no longer write. It has to be started again once there is room."""
    gate = tmp_path / "gate"
    with SandboxBroker(tmp_path / "broker", overrides={"log.dirs": str(disk / "data"), **SMALL}) as broker:
        bench = Bench.make(broker.bootstrap_servers, delivery=delivery, chunk_records=10, segments=[SEGMENT])
        fill(bench.bootstrap, bench.topic, gated(numbered(RECORDS), 15, gate))
        plan = bench.plan()
        with in_the_middle(bench, plan, 10, gate) as working:
            fill_up(disk)
            shorten_bounds(monkeypatch)
        (stopped,) = working.progress
        assert stopped.state == "stopped"
        assert "answer" in (stopped.reason or "")
        assert "then run again" in (stopped.reason or "")
        monkeypatch.undo()

        make_room(disk)
        broker.kill()
        broker.start()
        (again,) = bench.work(plan)
        assert again.complete
        assert bench.checkpoint(plan).complete
        assert committed(bench.bootstrap, plan.group, bench.topic, 1) == {0: RECORDS}
        found = sorted(json.loads(record.key or b"") for record in read_all(bench.bootstrap, bench.output))
        if delivery == "exactly_once":
            assert found == list(range(RECORDS))
        else:
            assert set(found) == set(range(RECORDS))


def test_a_job_that_cannot_be_put_together_fails_its_task_before_anything_is_read(
    broker: SandboxBroker, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(5))
    plan = bench.plan()
    fill_up(disk)

    with pytest.raises(OSError, match="No space left on device"):
        job_run(bench, bench.attempt(plan)).run(lambda progress: {})

    # Nothing of it is left, least of all half a file of secrets.
    assert [each.name for each in disk.iterdir()] == ["ballast"]
    assert not bench.checkpoint(plan).complete
    make_room(disk)
    bench.work(plan)
    assert bench.checkpoint(plan).complete
    wait_for(lambda: len(read_all(bench.bootstrap, bench.output)) == 5, "the outputs")
