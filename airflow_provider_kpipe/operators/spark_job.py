"""The base class of the operators that submit a Spark job."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseOperator

from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline, check_pipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive.redrive import Redrive
from airflow_provider_kpipe.hooks.kpipe import KpipeHook
from airflow_provider_kpipe.kafka.topic_limits import fit_to_topics
from airflow_provider_kpipe.running.attempts import begin_attempt
from airflow_provider_kpipe.running.job_run import JobRun
from airflow_provider_kpipe.spark.properties import check_spark_conf
from airflow_provider_kpipe.spark.submit_options import (
    check_conn_id,
    check_progress_interval,
    check_py_files,
    check_submit_options,
)

PROGRESS_KEY = "progress"


class SparkJobOperator(BaseOperator):
    """Base of the operators that submit one bounded job at a time, which does not outlive its task.

    The operator reads the job's progress from Kafka, not from its output: a job that is killed and tried again resumes
    at its last stored offset.
    """

    def __init__(
        self,
        *,
        pipeline: KafkaPipeline,
        conn_id: str = "spark_default",
        spark_conf: Mapping[str, str] | None = None,
        py_files: Sequence[str] = (),
        max_run_time: timedelta | float | None = None,
        progress_interval: float = 5.0,
        submit_options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_pipeline(pipeline)
        check_conn_id(conn_id)
        check_spark_conf(spark_conf or {})
        check_py_files(py_files)
        check_progress_interval(progress_interval)
        check_submit_options(submit_options or {})
        self.pipeline = pipeline
        self.conn_id = conn_id
        self.spark_conf = spark_conf
        self.py_files = py_files
        self.max_run_time = _seconds(max_run_time)
        self.progress_interval = progress_interval
        self.submit_options = submit_options
        self._job_run: JobRun | None = None

    def on_kill(self) -> None:
        if self._job_run is not None:
            self._job_run.stop()

    def job(self, pipeline: KafkaPipeline, plan: Plan, source_conn_id: str, redrive: Redrive | None = None) -> Job:
        """Begin an attempt at a plan's run. It takes over from all earlier attempts, even from running ones."""
        attempt = begin_attempt(KpipeHook(source_conn_id).get_conn(), plan)
        deadline = None if self.max_run_time is None else time.time() + self.max_run_time
        return Job(
            pipeline, plan, attempt.number, checkpointed=attempt.checkpointed, deadline=deadline, redrive=redrive
        )

    def job_run(self, job: Job, source_conn_id: str, written_topics: Sequence[str]) -> JobRun:
        """Make the run of a job that reads over one connection, and writes these topics over the destination's."""
        destination_conn_id = self.pipeline.destination_conn_id
        kafka = KafkaSettings(
            KpipeHook(source_conn_id).get_conn(),
            fit_to_topics(KpipeHook(destination_conn_id).get_conn(), written_topics),
            KpipeHook(self.pipeline.source.conn_id).get_registry(),
            KpipeHook(destination_conn_id).get_registry(),
        )
        self._job_run = JobRun(
            job,
            kafka,
            conn_id=self.conn_id,
            spark_conf=self.spark_conf,
            py_files=self.py_files,
            submit_options=self.submit_options,
            progress_interval=self.progress_interval,
        )
        return self._job_run


def _seconds(time_given: timedelta | float | None) -> float | None:
    seconds = time_given.total_seconds() if isinstance(time_given, timedelta) else time_given
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds <= 0):
        raise ValueError(f"max_run_time={time_given!r}: use a timedelta, or seconds above 0")
    return seconds
