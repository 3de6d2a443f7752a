"""A job over a plan, up to where Spark would begin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_kpipe.sandbox import SandboxBroker
from airflow_provider_kpipe.spark.submission import Submission
from tests.kit.job_runs import job_run, without_spark
from tests.kit.pipelines import Bench
from tests.kit.topics import are_held_back, fill, numbered
from tests.kit.workers import abandoned


@pytest.fixture
def submitted() -> Iterator[list[Submission]]:
    with without_spark() as found:
        yield found


def test_a_complete_run_is_not_submitted_again(broker: SandboxBroker, submitted: list[Submission]) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2)
    fill(bench.bootstrap, bench.topic, numbered(10, partitions=2))
    plan = bench.plan()
    bench.work(plan, 0)
    half = job_run(bench, bench.attempt(plan))
    assert [each.complete for each in half.run(lambda progress: {})] == [True, False]
    assert len(submitted) == 1
    bench.work(plan, 1)

    whole = job_run(bench, bench.attempt(plan))
    progress = whole.run(lambda progress: {})
    whole.check(progress)

    assert [(each.complete, each.counts.read, each.counts.written) for each in progress] == [(True, 5, 5)] * 2
    assert len(submitted) == 1


def test_transactions_of_an_earlier_run_are_ended_before_a_job_is_submitted(
    broker: SandboxBroker, submitted: list[Submission]
) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2)
    fill(bench.bootstrap, bench.topic, numbered(10, partitions=2))
    with abandoned(bench.worker(bench.plan("older"), 1)):
        assert are_held_back(bench.bootstrap, bench.output)

        job_run(bench, bench.attempt(bench.plan("newer", partitions=[0]))).run(lambda progress: {})

        assert len(submitted) == 1
        assert not are_held_back(bench.bootstrap, bench.output)
