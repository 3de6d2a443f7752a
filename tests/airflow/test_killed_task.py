"""A run task that is failed by hand, cleared, killed outright, or overtaken: nothing of its job is left running."""

from __future__ import annotations

import json
import re
import signal
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_kpipe.sandbox import SandboxBroker
from demo.airflow_api import DagRun
from demo.airflow_server import SandboxAirflow
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.processes import outlasting
from tests.kit.slow_runs import GONE_SECONDS, RECORDS, RUN_SECONDS, SEGMENTS, job_of, stored
from tests.kit.topics import committed, fill, numbered, read_all

LIVE_PROGRESS = r"partition 0: +\d+ %, [\d,]+ records/s, 0 dead letters"

DAG = """
import json
from pathlib import Path
import pendulum
from airflow.sdk import DAG
from airflow_provider_kpipe import KafkaPipeline
from airflow_provider_kpipe.task_group import kpipe_task_group

pipeline = KafkaPipeline.from_json(json.loads({pipeline!r}))
with DAG(dag_id={dag_id!r}, schedule=None, start_date=pendulum.datetime(2026, 1, 1)):
    kpipe_task_group(
        pipeline, group_id="group", py_files=[str(Path(__file__).with_name("{module}.py"))]
    )
"""


@pytest.fixture
def hurry(tmp_path: Path) -> Path:
    """A file that, once it is there, lets slow runs be slow no more."""
    return tmp_path / "hurry"


@pytest.fixture
def slow_run(
    airflow: SandboxAirflow,
    broker: SandboxBroker,
    dags_folder: Path,
    add_dag: Callable[[str, str], None],
    hurry: Path,
) -> tuple[Bench, DagRun]:
    """A run that takes five minutes, unless told to hurry, in the middle of its work."""
    module = f"pace_{uuid.uuid4().hex[:8]}"
    (dags_folder / f"{module}.py").write_text(SEGMENTS.format(hurry=str(hurry)))
    bench = Bench.make(broker.bootstrap_servers, segments=[f"{module}:slowly_at_first"], chunk_seconds=0.5)
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    dag_id = f"slow_{bench.topic}"
    add_dag(dag_id, DAG.format(dag_id=dag_id, module=module, pipeline=json.dumps(bench.pipeline.to_json())))
    run = airflow.api.trigger(dag_id)
    wait_for(lambda: bool(stored(bench)), "a stored chunk", RUN_SECONDS)
    return bench, run


def live_progress(run: DagRun) -> int:
    """The stored offset that the XCom of the run task shows; 0 as long as there is none."""
    shown = run.xcom("group.run", "progress")
    if shown is None:
        return 0
    (partition,) = shown["partitions"]
    assert partition["state"] == "running"
    return int(partition["stored"])


def test_marked_failed_by_hand_the_job_ends_and_its_prefix_is_committed(slow_run: tuple[Bench, DagRun]) -> None:
    bench, run = slow_run
    family = job_of(bench)
    assert len(family) >= 3

    run.mark_failed("group.run")

    assert outlasting(family, GONE_SECONDS) == []
    assert run.wait(RUN_SECONDS) == "failed"
    assert run.task_states()["group.checkpoint"] == "failed"
    done = committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1)[0]
    # The checkpoint comes while the job finishes the chunk in flight: it is the next run that goes on behind that.
    assert 0 < done <= stored(bench) < RECORDS
    assert len(read_all(bench.bootstrap, bench.output)) == stored(bench)
    assert bench.plan(run_key="next").ranges[0].start == stored(bench)
    assert "what they had completed is committed" in run.log("group.checkpoint")


def test_cleared_while_it_runs_it_goes_on_where_it_stored(slow_run: tuple[Bench, DagRun], hurry: Path) -> None:
    bench, run = slow_run
    family = job_of(bench)
    before = stored(bench)
    wait_for(lambda: bool(re.search(LIVE_PROGRESS, run.log("group.run"))), "live progress in the log", RUN_SECONDS)
    wait_for(lambda: 0 < live_progress(run) < RECORDS, "live progress in XCom", RUN_SECONDS)

    run.clear(["group.run"], downstream=True)

    assert outlasting(family, GONE_SECONDS) == []
    hurry.touch()
    assert run.wait(RUN_SECONDS) == "success", run.task_states()
    assert before > 0
    assert len(read_all(bench.bootstrap, bench.output)) == RECORDS
    assert run.xcom("group.checkpoint")["partitions"][0]["counts"]["read"] == RECORDS
    log = run.log("group.run")
    assert re.search(rf"0 +0 +{RECORDS} +{RECORDS} +complete +{RECORDS}", log)


def test_killed_outright_nothing_is_left_running(slow_run: tuple[Bench, DagRun]) -> None:
    bench, _ = slow_run
    family = job_of(bench)
    task = family[0].parent()
    assert task is not None
    assert "airflow" in " ".join(task.cmdline())

    task.send_signal(signal.SIGKILL)

    assert outlasting(family, GONE_SECONDS) == []


def test_a_newer_run_of_the_same_pipeline_takes_over_and_both_outcomes_are_in_the_dag(
    airflow: SandboxAirflow, slow_run: tuple[Bench, DagRun], hurry: Path
) -> None:
    bench, older = slow_run

    newer = airflow.api.trigger(older.dag_id)
    assert older.wait(RUN_SECONDS) == "failed", newer.task_states()
    hurry.touch()

    assert newer.wait(RUN_SECONDS) == "success", newer.task_states()
    assert older.xcom("group.run", "progress")["partitions"][0]["state"] == "revoked"
    assert "took the partition over" in older.log("group.run")
    assert older.task_states()["group.checkpoint"] == "failed"
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {0: RECORDS}
    keys = [record.key for record in read_all(bench.bootstrap, bench.output)]
    assert len(keys) == len(set(keys)) == RECORDS
