"""A redrive on a real Spark, killed in the middle and repeated: every dead letter goes back exactly once."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import replace

import pytest

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.contract.redrive.redrive import RedriveTarget
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import driver_jvm, end_transactions, python_workers, running_job, wait_for
from tests.kit.pipelines import Bench
from tests.kit.redrives import order, redrive, work
from tests.kit.topics import fill, numbered, read_all

LETTERS = 10_000
PARTITIONS = 4
# Small, so that a kill finds most of the letters still to be done.
CHUNK = 100


@pytest.mark.parametrize("target", ["source", "output"])
def test_ten_thousand_dead_letters_killed_in_the_middle_and_repeated_go_back_once_each(
    broker: SandboxBroker, target: RedriveTarget
) -> None:
    bench = Bench.make(broker.bootstrap_servers, PARTITIONS, segments=["faulty_kit:odd_ones_fail"])
    fill(bench.bootstrap, bench.topic, numbered(2 * LETTERS, PARTITIONS))
    bench.work(bench.plan())
    fixed = replace(bench, pipeline=replace(bench.pipeline, segments=(), chunk_records=CHUNK))
    made = order(fixed, target=target)
    assert made.plan.offsets_planned >= LETTERS

    with running_job(fixed, made.plan, redrive=made.redrive) as job:
        wait_for(lambda: counts(fixed, made.plan).read > 2 * CHUNK, "some chunks")
        python_workers(job.pid)[0].send_signal(signal.SIGKILL)
        job.wait(60)
    end_transactions(fixed, made.plan)
    before = counts(fixed, made.plan).read
    assert before < LETTERS
    with running_job(fixed, made.plan, redrive=made.redrive) as job:
        wait_for(lambda: counts(fixed, made.plan).read > before + CHUNK, "a chunk of the second try")
        driver_jvm(job.pid).send_signal(signal.SIGKILL)
        job.wait(60)
    end_transactions(fixed, made.plan)
    assert counts(fixed, made.plan).read < LETTERS
    # Another press, before the first one has come to its end, takes over; the first one then leaves it alone.
    second = order(fixed, "redrive-2", target=target)
    assert all(progress.complete for progress in work(fixed, second))
    assert all(progress.complete or progress.ended == "revoked" for progress in work(fixed, made))

    topic = bench.topic if target == "source" else bench.output
    times = Counter(record.key for record in read_all(bench.bootstrap, topic))
    assert len(times) == 2 * LETTERS
    odd = {str(each).encode() for each in range(1, 2 * LETTERS, 2)}
    assert {times[key] for key in odd} == {2 if target == "source" else 1}
    assert {times[key] for key in times.keys() - odd} == {1}
    assert redrive(fixed, "redrive-3", target=target).named == {"kpipe:already_redriven": LETTERS}


def counts(bench: Bench, plan: Plan) -> Counts:
    with Positions(bench.settings) as positions:
        return sum((each.counts for each in positions.progress(plan)), Counts())
