"""kpipe with its defaults, submitted as KpipeRunOperator submits it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from airflow_provider_kpipe.contract.job import Job as KpipeJob
from airflow_provider_kpipe.contract.job import KafkaSettings, pack
from airflow_provider_kpipe.contract.job_file import write_job
from airflow_provider_kpipe.contract.pipeline.declaration import (
    Delivery,
    KafkaDeadLetter,
    KafkaDestination,
    KafkaPipeline,
    KafkaSource,
)
from airflow_provider_kpipe.planning.make_plan import make_plan
from airflow_provider_kpipe.planning.ranges import Wishes
from airflow_provider_kpipe.spark.application import application_file, write_engine_archive
from airflow_provider_kpipe.spark.environment import submit_environment
from airflow_provider_kpipe.spark.properties import (
    DEFAULTS,
    FORCED,
    LOCAL_DEFAULTS,
    spark_properties,
    write_properties,
)
from bench.data import check_output
from bench.processes import DRIVERS, TASKS, Session, Watch, own_environment, whole_run
from bench.work import Job

MASTER = "local[2]"
# The files that a user ships with the segments.
PY_FILES = tuple(str(TASKS / name) for name in ("kpipe_segments.py", "per_record.py", "arrow_kernels.py"))

EXACTLY_ONCE, AT_LEAST_ONCE = "kpipe, exactly once", "kpipe, at least once"


class WarmSpark:
    """A running driver, with the properties and the archive of a submit. Each call of `run` brings a job."""

    def __init__(self, folder: Path, archive: Path, log: Path, master: str, py_files: Sequence[str]) -> None:
        properties = folder / "session.properties"
        write_properties(properties, {**DEFAULTS, **LOCAL_DEFAULTS, **FORCED})
        shipped = ",".join([str(archive), str(application_file()), *py_files])
        submit = f"--master {master} --properties-file {properties} --py-files {shipped}"
        environment = submit_environment(own_environment(), master, folder)
        environment["PYSPARK_SUBMIT_ARGS"] = f"{submit} pyspark-shell"
        self._session = Session([sys.executable, str(DRIVERS / "kpipe_rounds.py")], environment, log)

    def run(self, job: KpipeJob, settings: KafkaSettings) -> float:
        """Run a job; return the seconds that the driver took."""
        return float(self._session.ask({"job": pack(job), "settings": pack(settings)})["seconds"])

    def close(self) -> None:
        self._session.close()


class Kpipe:
    """kpipe with one kind of delivery. Each job is a pipeline of its own, with a group that has read nothing yet."""

    def __init__(self, delivery: Delivery, folder: Path) -> None:
        self.name = {"exactly_once": EXACTLY_ONCE, "at_least_once": AT_LEAST_ONCE}[delivery]
        self._delivery: Delivery = delivery
        self._folder = folder / delivery
        self._folder.mkdir()
        self._environment = submit_environment(own_environment(), MASTER, self._folder)
        self._archive = write_engine_archive(self._folder / "engine.zip")
        self._log = self._folder / "log"
        self._session: WarmSpark | None = None

    def submit(self, job: Job, watch: Watch = lambda pid: contextlib.nullcontext()) -> float:
        """Do one job by a whole submit. The clock starts after the planning, and measures only Spark's part."""
        planned, settings = planned_job(job, self._delivery), settings_of(job)
        properties = self._folder / f"{job.output}.properties"
        write_properties(properties, spark_properties(MASTER, {}))
        job_file = write_job(self._folder / f"{job.output}.job", planned, settings)
        command = [
            str(Path(sys.executable).with_name("spark-submit")),
            *("--master", MASTER),
            *("--properties-file", str(properties)),
            *("--py-files", ",".join([str(self._archive), *(PY_FILES if planned.pipeline.segments else ())])),
            *("--name", f"kpipe {planned.plan.pipeline}"),
            "--load-spark-defaults",
            str(application_file()),
            *(str(job_file), str(properties)),
        ]
        return whole_run(command, self._environment, self._log, watch)

    def start(self) -> None:
        own = self._folder / "session"
        own.mkdir()
        self._session = WarmSpark(own, self._archive, self._log, MASTER, PY_FILES)

    def run(self, job: Job) -> float:
        assert self._session is not None
        return self._session.run(planned_job(job, self._delivery), settings_of(job))

    def check(self, job: Job) -> None:
        check_output(job, unique=self._delivery == "exactly_once")

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def planned_job(job: Job, delivery: Delivery) -> KpipeJob:
    """Plan a job as a pipeline of its own, as Airflow's plan task does."""
    dead_letter = KafkaDeadLetter(job.dead_letters) if job.work.records.poison_percent else None
    pipeline = KafkaPipeline(
        name=job.output,
        source=KafkaSource(job.work.records.topic),
        destination=KafkaDestination(job.output),
        dead_letter=dead_letter,
        delivery=delivery,
        **job.work.pipeline,
    )
    plan = make_plan(
        pipeline,
        Wishes(),
        {"bootstrap.servers": job.bootstrap_servers},
        run_key=job.output,
        publish=False,
        dry_run=False,
        created_at=datetime.now(timezone.utc).isoformat(),
    )
    return KpipeJob(pipeline, plan)


def settings_of(job: Job) -> KafkaSettings:
    connection = {"bootstrap.servers": job.bootstrap_servers}
    return KafkaSettings(connection, connection)
