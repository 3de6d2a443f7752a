"""A Spark that is up, for jobs of which nothing but the work is under test: a submit of each takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.spark.application import write_engine_archive
from bench.contestants.kpipe import WarmSpark
from tests.kit.jobs import SEGMENTS
from tests.kit.pipelines import Bench

SLOTS = 4


@pytest.fixture(scope="session")
def run_warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Bench, Plan], str]]:
    """Runs a plan on four slots, and returns what the log says about it."""
    folder = tmp_path_factory.mktemp("warm-spark")
    log, kits = folder / "log", [str(SEGMENTS / name) for name in ("orders_kit.py", "waiting_kit.py")]
    archive = write_engine_archive(folder / "engine.zip")

    with closing(WarmSpark(folder, archive, log, f"local[{SLOTS}]", kits)) as spark:

        def run(bench: Bench, plan: Plan) -> str:
            before = log.stat().st_size
            spark.run(bench.attempt(plan), bench.kafka)
            with log.open() as said:
                said.seek(before)
                return said.read()

        yield run
