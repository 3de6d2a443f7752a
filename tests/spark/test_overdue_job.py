"""Jobs of which a part hangs when the run's time has passed: each is ended by whoever looks after it, and says so."""

from __future__ import annotations

import signal
import time

from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import descendants, python_workers, running_job, wait_for
from tests.kit.pipelines import Bench
from tests.kit.processes import is_alive
from tests.kit.topics import fill, numbered

GRACE = 1.0
# Longer than a job takes to begin, on a busy machine too.
SECONDS = 25.0


def test_a_driver_whose_tasks_hang_ends_itself_and_names_them(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["orders_kit:slowly"])
    fill(bench.bootstrap, bench.topic, numbered(50_000))
    plan, deadline = bench.plan(), time.time() + SECONDS
    with running_job(bench, plan, deadline=deadline, grace_seconds=GRACE) as job:
        wait_for(lambda: bool(python_workers(job.pid)), "a worker")
        for each in python_workers(job.pid):
            each.send_signal(signal.SIGSTOP)
        code, output = job.wait(90), job.output()
    assert code != 0
    assert "tasks over the partitions 0 have not come to their end: the job is ended" in output
    assert time.time() > deadline + 3 * GRACE


def test_a_driver_that_hangs_is_killed_and_the_error_says_so(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["orders_kit:slowly"])
    fill(bench.bootstrap, bench.topic, numbered(50_000))
    plan, deadline = bench.plan(), time.time() + SECONDS
    with running_job(bench, plan, deadline=deadline, grace_seconds=GRACE) as job:
        wait_for(lambda: bool(python_workers(job.pid)), "a worker")
        family = descendants(job.pid)
        for each in family:
            each.send_signal(signal.SIGSTOP)
        code, output = job.wait(90), job.output()
        # The system takes a while to take down a Java that was killed.
        wait_for(lambda: not any(map(is_alive, family)), "the end of all processes of the job", 30)
    assert code != 0
    assert "Spark's driver had not come to its end 4 s after max_run_time, and was killed" in output
