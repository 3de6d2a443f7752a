"""A whole job whose segments ask a schema registry, with settings from the private file."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from formats_kit import AVRO

from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import descendants, python_workers, running_job, wait_for
from tests.kit.leaks import reveals
from tests.kit.pipelines import Bench
from tests.kit.schema_registry import running_registry
from tests.kit.topics import Sent, fill, read_all


def test_ready_made_segments_reach_their_registry_and_their_password_shows_nowhere(
    broker: SandboxBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark's workers look into the current folder first, which must not be the checkout.
    monkeypatch.chdir(tmp_path)
    bench = Bench.make(
        broker.bootstrap_servers,
        partitions=2,
        segments=[
            "airflow_provider_kpipe.formats.avro:Read",
            "orders_kit:slowly",
            "formats_kit:says_where_from",
            "formats_kit:WriteAvro",
        ],
    )
    shown: list[str] = []
    with running_registry() as registry:
        registry.register(f"{bench.output}-value", AVRO)
        sent = [Sent(b"\x00\x00\x00\x00\x01" + bytes([2 * (at % 64), 0]), partition=at % 2) for at in range(300)]
        fill(bench.bootstrap, bench.topic, sent)
        bench = replace(bench, registry=registry.settings)
        plan = bench.plan()
        with running_job(bench, plan) as job:
            wait_for(lambda: bool(python_workers(job.pid)), "a worker")
            for process in descendants(job.pid):
                with contextlib.suppress(psutil.NoSuchProcess):  # one that has just ended shows nothing any more
                    shown += process.cmdline()
                    shown += [f"{name}={value}" for name, value in process.environ().items()]
            output = job.output()

    assert job.wait() == 0, output
    totals = bench.checkpoint(plan).totals
    assert (totals.read, totals.written) == (300, 300)
    written = read_all(bench.bootstrap, bench.output)
    assert sorted(each.value or b"" for each in written) == sorted(each.value or b"" for each in sent)
    (home,) = {each.header("from") for each in written}
    assert home.endswith("kpipe_engine.zip/airflow_provider_kpipe/formats/avro.py")
    assert any("kpipe.job" in each for each in shown)
    for text in (*shown, output):
        assert not reveals(text, registry.password)
