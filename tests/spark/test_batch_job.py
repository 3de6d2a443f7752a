"""A whole job whose segments take Arrow batches, from the archive that executors get."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import run_job
from tests.kit.pipelines import Bench
from tests.kit.topics import fill, numbered, read_all


def test_batch_segments_run_from_the_shipped_archive(
    broker: SandboxBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark's workers look into the current folder first, which must not be the checkout.
    monkeypatch.chdir(tmp_path)
    bench = Bench.make(
        broker.bootstrap_servers,
        partitions=2,
        segments=["orders_kit:parse", "batch_kit:only_even", "batch_kit:with_header"],
    )
    records = numbered(3_000, partitions=2)
    records[10] = type(records[10])(b"{broken", b"10", partition=0)
    fill(bench.bootstrap, bench.topic, records)
    plan = bench.plan()

    code, output = run_job(bench, plan)

    assert code == 0, output
    checkpoint = bench.checkpoint(plan)
    assert checkpoint.complete
    totals = checkpoint.totals
    assert (totals.read, totals.written, totals.filtered, totals.dead_lettered) == (3_000, 1_499, 1_500, 1)
    found = read_all(bench.bootstrap, bench.output)
    assert len(found) == 1_499
    # Where the segments' module got its decorator from.
    (home,) = {each.header("from") for each in found}
    assert home.endswith("kpipe_engine.zip/airflow_provider_kpipe/segments.py")
