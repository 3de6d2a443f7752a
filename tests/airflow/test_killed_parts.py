"""A scheduler, a triggerer, a task's process and its executor's worker, each killed while Spark works."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import psutil

from airflow_provider_kpipe.sandbox import SandboxBroker
from demo.airflow_settings import LOCAL_SPARK, kafka_connection
from tests.kit.airflow_parts import airflow_in_parts
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.processes import outlasting
from tests.kit.slow_runs import GONE_SECONDS, RECORDS, RUN_SECONDS, SEGMENTS, job_of, stored
from tests.kit.topics import committed, fill, numbered, read_all

DAG = """
import json
from pathlib import Path
import pendulum
from airflow.sdk import DAG
from airflow_provider_kpipe import KafkaPipeline
from airflow_provider_kpipe.sensors.partitions_drained import KpipePartitionsDrainedSensor
from airflow_provider_kpipe.task_group import kpipe_task_group

pipeline = KafkaPipeline.from_json(json.loads({pipeline!r}))
with DAG(
    dag_id={dag_id!r},
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1),
    default_args={{"retries": 9, "retry_delay": 0}},
):
    kpipe_task_group(pipeline, group_id="group", py_files=[str(Path(__file__).with_name("pace.py"))])
    KpipePartitionsDrainedSensor(
        task_id="gate", pipeline=pipeline, until={records}, deferrable=True, poke_interval=1
    )
"""


def goes_on(bench: Bench) -> None:
    before = stored(bench)
    wait_for(lambda: stored(bench) > before, "another stored chunk", RUN_SECONDS)


def parent(process: psutil.Process) -> psutil.Process:
    found = process.parent()
    assert found is not None
    return found


def test_they_cost_time_and_nothing_else(broker: SandboxBroker, tmp_path: Path) -> None:
    """One Airflow for all of them: each dies in the middle of the work of another try."""
    hurry, dags = tmp_path / "hurry", tmp_path / "dags"
    bench = Bench.make(broker.bootstrap_servers, segments=["pace:slowly_at_first"], chunk_seconds=0.5)
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    dag_id = f"slow_{bench.topic}"
    dags.mkdir()
    (dags / "pace.py").write_text(SEGMENTS.format(hurry=str(hurry)))
    pipeline = json.dumps(bench.pipeline.to_json())
    (dags / f"{dag_id}.py").write_text(DAG.format(dag_id=dag_id, pipeline=pipeline, records={0: RECORDS}))
    connections = {"kafka_default": kafka_connection(broker.bootstrap_servers), "spark_default": LOCAL_SPARK}

    with airflow_in_parts(tmp_path / "home", dags, connections, dag_id) as (airflow, parts):
        run = airflow.api.trigger(dag_id)
        wait_for(lambda: bool(stored(bench)), "a stored chunk", RUN_SECONDS)
        wait_for(lambda: run.task_states()["gate"] == "deferred", "the gate to be deferred", RUN_SECONDS)
        first_job = job_of(bench)
        assert len(first_job) >= 3

        parts.kill("triggerer")
        parts.kill("scheduler")
        goes_on(bench)
        assert all(each.is_running() for each in first_job)
        parts.start("scheduler", "triggerer")
        # The scheduler knows nothing of a task that another one has begun: it lets it begin anew.
        wait_for(lambda: run.tries("group.run") > 1, "another try", RUN_SECONDS)
        assert outlasting(first_job, GONE_SECONDS) == []
        wait_for(lambda: len(job_of(bench)) >= 3, "another job", RUN_SECONDS)
        goes_on(bench)

        second_job, tries = job_of(bench), run.tries("group.run")
        task = parent(second_job[0])
        assert "airflow" in " ".join(task.cmdline())
        task.send_signal(signal.SIGKILL)
        assert outlasting(second_job, GONE_SECONDS) == []
        wait_for(lambda: run.tries("group.run") > tries, "a try behind the killed one", RUN_SECONDS)
        wait_for(lambda: len(job_of(bench)) >= 3, "a third job", RUN_SECONDS)
        goes_on(bench)

        third_job, tries = job_of(bench), run.tries("group.run")
        worker = parent(parent(third_job[0]))
        assert "LocalExecutor" in " ".join(worker.cmdline())
        worker.send_signal(signal.SIGKILL)
        assert outlasting(third_job, GONE_SECONDS) == []
        # The task has died with its worker, and nobody tells: the scheduler misses its heartbeats.
        wait_for(lambda: run.tries("group.run") > tries, "a try behind the killed worker", RUN_SECONDS)
        assert stored(bench) < RECORDS
        assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {}

        hurry.touch()
        assert run.wait(RUN_SECONDS) == "success", run.task_states()
        assert set(run.task_states().values()) == {"success"}
        assert run.tries("group.run") > tries
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {0: RECORDS}
    keys = [record.key for record in read_all(bench.bootstrap, bench.output)]
    assert len(keys) == len(set(keys)) == RECORDS
