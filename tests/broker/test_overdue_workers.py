"""Workers that do not yield when the run's time has passed: ended by their supervisor, and named."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive.redrive import Redrive
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.redrives import fixed, ids, order, redrive
from tests.kit.tasks import work_in_task
from tests.kit.topics import Sent, fill, read_all

AN_HOUR = 3_600.0
WorkUntilLate = Callable[..., tuple[list[dict[str, Any]], str]]


@pytest.fixture
def work_until_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkUntilLate:
    """Does the work of a task, whose deadline has passed as soon as a worker is at what it does not come back from,
    and the neighbours have come to their end."""
    marks, late = tmp_path / "marks", tmp_path / "late"
    marks.mkdir()
    monkeypatch.setenv("KPIPE_TEST_MARKS", str(marks))

    def work(
        bench: Bench, plan: Plan, redrive: Redrive | None = None, neighbours: Sequence[int] = ()
    ) -> tuple[list[dict[str, Any]], str]:
        def have_come() -> bool:
            with Positions(bench.settings) as positions:
                return all(each.complete for each in positions.progress(plan) if each.range.partition in neighbours)

        def let_it_be_late() -> None:
            wait_for(lambda: any(marks.iterdir()) and have_come(), "the worker and its neighbours")
            late.touch()

        job = bench.attempt(plan, redrive, deadline=time.time() + AN_HOUR)
        clock = threading.Thread(target=let_it_be_late)
        clock.start()
        done = work_in_task(bench, plan, at_once=2, job=job, late=late)
        clock.join()
        return done

    return work


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_worker_that_does_not_yield_is_ended_and_its_partition_is_named(
    broker: SandboxBroker, work_until_late: WorkUntilLate, delivery: Delivery
) -> None:
    spec: dict[str, Any] = {"delivery": delivery, "segments": ["deadly_kit:deadly"], "chunk_records": 5}
    bench = Bench.make(broker.bootstrap_servers, 2, **spec)
    # In the second chunk of partition 0.
    fates = {14: "sleep"}
    sent = [
        Sent(json.dumps({"id": each, "fate": fates.get(each, "")}).encode(), partition=each % 2) for each in range(20)
    ]
    fill(bench.bootstrap, bench.topic, sent)
    plan = bench.plan()

    done, said = work_until_late(bench, plan, neighbours=[1])

    hung, healthy = sorted(done, key=lambda each: each["partition"])
    assert (healthy["state"], healthy["stored"]) == ("complete", 10)
    assert (hung["state"], hung["stored"]) == ("yielded", 5), said
    assert "the run has reached its max_run_time" in hung["reason"]
    assert "still busy with partition 0, offsets 5 to 9; it had stored nothing since 20" in hung["reason"]
    with Positions(bench.settings) as positions:
        assert [each.reason for each in positions.progress(plan)] == [hung["reason"], None]
    written = [json.loads(each.value or b"")["id"] for each in read_all(bench.bootstrap, bench.output)]
    stored = sorted([*range(0, 10, 2), *range(1, 20, 2)])
    # Of the chunk that came to nothing, what was before the record is there where nothing takes it back.
    assert sorted(written) == (stored if delivery == "exactly_once" else sorted([*stored, 10, 12]))


def test_a_redrive_whose_worker_does_not_yield_is_ended_and_the_next_one_goes_on_with_what_is_left(
    broker: SandboxBroker, work_until_late: WorkUntilLate
) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["faulty_kit:fails"], max_dead_letter_ratio=None)
    records = [{"id": each, "fate": "sleep" if each == 7 else ""} for each in range(10)]
    fill(bench.bootstrap, bench.topic, [Sent(json.dumps(each).encode()) for each in records])
    bench.work(bench.plan())
    hanging = fixed(replace(bench, pipeline=replace(bench.pipeline, chunk_records=5)), "deadly_kit:deadly")
    made = order(hanging)

    (done,), said = work_until_late(hanging, made.plan, made.redrive)

    assert (done["state"], done["stored"]) == ("yielded", 5), said
    assert "the run has reached its max_run_time" in done["reason"]
    assert "still busy with partition 0, offsets 5 to 9" in done["reason"]
    assert ids(bench, bench.output) == list(range(5))

    assert redrive(fixed(bench), "redrive-2").named == {"kpipe:redriven": 5, "kpipe:already_redriven": 5}
    assert ids(bench, bench.output) == list(range(10))


def test_a_worker_that_has_not_imported_its_segments_by_then_is_ended_and_its_partition_is_named(
    broker: SandboxBroker, work_until_late: WorkUntilLate
) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["never_kit:never"])
    fill(bench.bootstrap, bench.topic, [Sent()])
    plan = bench.plan()

    # Nobody but the supervisor ends it: there is no segment_timeout.
    (done,), said = work_until_late(bench, plan)

    assert (done["state"], done["stored"]) == ("yielded", 0), said
    assert "the worker was still busy with no record" in done["reason"]
    with Positions(bench.settings) as positions:
        assert [each.reason for each in positions.progress(plan)] == [done["reason"]]


def test_a_worker_that_cannot_even_say_so_ends_the_task(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, [Sent()])
    plan = bench.plan()
    job = bench.attempt(plan, deadline=time.time(), grace_seconds=1.0)
    # It can tell nobody.
    cut_off = replace(bench, bootstrap="localhost:1")
    with pytest.raises(AssertionError) as failed:
        work_in_task(cut_off, plan, job=job)
    # Nothing is raised over it while the task ends.
    _, of_its_kind, last = str(failed.value).rpartition("kpipe_engine.errors.WorkerDiedError: ")
    assert of_its_kind
    assert "also while it only had to say that it stops" in last
    assert "During handling" not in last
